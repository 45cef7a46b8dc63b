//! `gyan watch` on a terminal: its other screen, which is left as it was found, whatever ends the command.

use std::io::{self, IsTerminal, Read, Write};
use std::panic;
use std::process::exit;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::{JobEnd, Look, NOTHING, Watcher};
use crate::error::Error;

/// To the other screen, without a cursor, and without going on in the next line where one is full.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";
/// A window whose size is not known.
const SIZE: (usize, usize) = (100, 24);

/// What happened.
enum Event {
    Looked(Result<Look, Error>),
    /// Keys that were pressed together: those that a terminal sends for one key come so.
    Keys(Vec<u8>),
    Signal(i32),
}

/// Shows one look after the other. Returns how the job ended; none if the user left before.
pub(super) fn show(
    first: Look,
    watcher: Watcher,
    interval: Duration,
) -> Result<Option<JobEnd>, Error> {
    let mut text = match first {
        Look::Ended(end) => return Ok(Some(end)),
        Look::Nothing => NOTHING.as_bytes().to_vec(),
        Look::Running(text) => text,
    };
    let mut looked = SystemTime::now();
    let events = events(watcher, interval)?;
    let screen = Screen::enter();
    let every = humantime::format_duration(interval).to_string();
    loop {
        draw(&text, looked, &every);
        match events.recv() {
            Ok(Event::Looked(Ok(Look::Ended(end)))) => return Ok(Some(end)),
            Ok(Event::Looked(Ok(Look::Running(now)))) => {
                (text, looked) = (now, SystemTime::now());
            }
            Ok(Event::Looked(Ok(Look::Nothing))) => looked = SystemTime::now(),
            Ok(Event::Looked(Err(error))) => return Err(error),
            Ok(Event::Keys(keys)) if leaves(&keys) => return Ok(None),
            Ok(Event::Signal(SIGINT)) | Err(_) => return Ok(None),
            Ok(Event::Signal(SIGTSTP)) => {
                restore();
                let _ = emulate_default_handler(SIGTSTP);
                change();
            }
            Ok(Event::Signal(signal @ (SIGTERM | SIGHUP | SIGQUIT))) => {
                drop(screen);
                let _ = emulate_default_handler(signal);
                exit(128 + signal);
            }
            Ok(Event::Keys(_) | Event::Signal(_)) => {}
        }
    }
}

/// q, Q, Escape, and Ctrl-C and Ctrl-D where they are keys like others.
fn leaves(keys: &[u8]) -> bool {
    const ESCAPE: u8 = 0x1b;
    match keys {
        [ESCAPE] => true,
        // A key such as an arrow.
        [ESCAPE, ..] => false,
        keys => keys.iter().any(|key| matches!(key, b'q' | b'Q' | 3 | 4)),
    }
}

/// Everything that can happen, in the order in which it does.
fn events(watcher: Watcher, interval: Duration) -> Result<Receiver<Event>, Error> {
    let (sender, receiver) = channel();
    let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH];
    let mut signals =
        Signals::new(signals).map_err(|error| Error::new("gyan watch", error, "start it again"))?;
    let told = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let _ = told.send(Event::Signal(signal));
        }
    });
    if io::stdin().is_terminal() {
        let pressed = sender.clone();
        thread::spawn(move || read_keys(&pressed));
    }
    thread::spawn(move || look_on(watcher, interval, &sender));
    Ok(receiver)
}

fn read_keys(sender: &Sender<Event>) {
    let mut keys = [0; 64];
    loop {
        match io::stdin().lock().read(&mut keys) {
            Ok(length @ 1..) => {
                let keys = keys.get(..length).unwrap_or_default().to_vec();
                let _ = sender.send(Event::Keys(keys));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The terminal is gone, of which a signal tells.
            Ok(_) | Err(_) => return,
        }
    }
}

fn look_on(mut watcher: Watcher, interval: Duration, sender: &Sender<Event>) {
    let mut took = Duration::ZERO;
    loop {
        // Of a large job on a slow file system, looks take at most half of the time.
        thread::sleep(interval.saturating_sub(took).max(took));
        let begun = Instant::now();
        let looked = watcher.look();
        took = begun.elapsed();
        let is_last = !matches!(looked, Ok(Look::Running(_) | Look::Nothing));
        if sender.send(Event::Looked(looked)).is_err() || is_last {
            return;
        }
    }
}

struct TerminalBefore {
    /// None if no keys come from a terminal.
    keys: Option<Termios>,
}

/// While the other screen is shown.
static BEFORE: Mutex<Option<TerminalBefore>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<TerminalBefore>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The other screen of the terminal, until this is dropped.
struct Screen;

impl Screen {
    fn enter() -> Screen {
        static HOOK: Once = Once::new();
        // What a panic says would be lost with the other screen.
        HOOK.call_once(|| {
            let said = panic::take_hook();
            panic::set_hook(Box::new(move |about| {
                restore();
                said(about);
            }));
        });
        change();
        Screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Ctrl-C and Ctrl-Z are still signals.
fn change() {
    let keys = tcgetattr(io::stdin()).ok();
    if let Some(mut keys) = keys.clone() {
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &keys);
    }
    *before() = Some(TerminalBefore { keys });
    put(ENTER);
}

fn restore() {
    let Some(TerminalBefore { keys }) = before().take() else { return };
    put(LEAVE);
    if let Some(keys) = keys {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &keys);
    }
}

/// A terminal that is gone needs nothing.
fn put(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

fn draw(text: &[u8], looked: SystemTime, every: &str) {
    let has_styles = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let text = String::from_utf8_lossy(text);
    let text = if has_styles {
        text.into_owned()
    } else {
        anstream::adapter::strip_str(&text).to_string()
    };
    let time = humantime::format_rfc3339_seconds(looked).to_string();
    let time = time.get(11..19).unwrap_or_default();
    let said = format!("{time} UTC, every {every}; q leaves");
    let size = terminal_size::terminal_size();
    let size = size.map_or(SIZE, |(width, height)| (width.0.into(), height.0.into()));
    let mut frame = String::from("\x1b[H");
    for line in fitted(&text, &said, size) {
        // Before its text: after a full line it would take the last letter.
        frame.push_str("\x1b[2K");
        frame.push_str(&line);
        frame.push_str("\r\n");
    }
    frame.truncate(frame.len() - 2);
    frame.push_str("\x1b[J");
    put(frame.as_bytes());
}

/// The lines that fit into a window, and the last one, which says how many more there are.
fn fitted(text: &str, said: &str, (width, height): (usize, usize)) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let room = height.saturating_sub(1);
    // A blank line before the last one, if there is room for it.
    let mut lines: Vec<String> = all.iter().take(room).map(|line| cut(line, width)).collect();
    let more = all.len() - lines.len();
    if more == 0 && lines.len() < room {
        lines.push(String::new());
    }
    let more = match more {
        0 => String::new(),
        1 => "1 more line; ".into(),
        more => format!("{more} more lines; "),
    };
    lines.push(cut(&format!("{more}{said}"), width));
    lines
}

/// A line with styles, of which no more than `width` letters are seen.
fn cut(line: &str, width: usize) -> String {
    let mut cut = String::new();
    let (mut seen, mut letters) = (0, line.chars());
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            // All of them: the last one ends the styles before it.
            cut.push(letter);
            for letter in letters.by_ref() {
                cut.push(letter);
                if letter.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if seen < width {
            cut.push(letter);
            seen += 1;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_leave_and_other_keys_do_not() {
        for keys in [&b"q"[..], b"xxq", b"\x1b", b"\x03"] {
            assert!(leaves(keys), "{keys:?}");
        }
        for keys in [&b"x"[..], b"\x1b[A", b"\x1bOq", b" \n"] {
            assert!(!leaves(keys), "{keys:?}");
        }
    }

    #[test]
    fn a_look_fits_into_the_window_and_says_how_many_lines_are_left() {
        let text = "\x1b[1mfirst line\x1b[0m\nsecond\nthird\n";
        assert_eq!(fitted(text, "12:00", (5, 3)), ["\x1b[1mfirst\x1b[0m", "secon", "1 mor"]);
        assert_eq!(fitted(text, "12:00", (80, 2))[1], "2 more lines; 12:00");
        assert_eq!(fitted(text, "12:00", (80, 4)).len(), 4);
        assert_eq!(fitted(text, "12:00", (80, 9))[3..], ["", "12:00"]);
        assert_eq!(fitted(text, "12:00", (80, 1)), ["3 more lines; 12:00"]);
        assert_eq!(fitted(text, "12:00", (80, 0)).len(), 1);
    }
}
