//! Hands a trace to Perfetto's viewer, a page of <https://ui.perfetto.dev> that runs in the user's browser. The browser takes the file
//! from this machine, and the viewer sends it nowhere.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use tiny_http::{Header, Method, Response, Server};

use crate::error::{Error, reason};
use crate::{output, say};

const VIEWER: &str = "https://ui.perfetto.dev";
/// The viewer reads from no other port of the user's machine (its content security policy).
const PORT: u16 = 9001;
const TRACE: &str = "/trace";

/// How a trace begins: with a packet of Perfetto, or as `gyan timeline` writes those in JSON.
const BEGINNINGS: [&[u8]; 2] = [&[0x0a], b"{\"displayTimeUnit\""];

pub(super) fn is_trace(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(32).read_to_end(&mut beginning));
    read.is_ok() && BEGINNINGS.iter().any(|known| beginning.starts_with(known))
}

/// Until a browser has taken the trace. `browse`: shows an address.
pub(super) fn show(
    trace: &Path,
    browse: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let port = format!("port {PORT} of this machine");
    let failed = |error: &io::Error| {
        let remedy =
            format!("the viewer reads from no other port: open the file in {VIEWER} by hand");
        Error::new(&port, reason(error), remedy)
    };
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).map_err(|error| failed(&error))?;
    browse(Path::new(&format!("{VIEWER}/#!/?url=http://127.0.0.1:{PORT}{TRACE}")))?;
    output::say(format_args!(
        "the browser takes the trace from {port}, and the viewer sends it nowhere; gyan ends when it has been taken\n\
         a browser on another machine can if this one is reached by: ssh -L {PORT}:127.0.0.1:{PORT} HOST"
    ))?;
    hand_out(listener, trace).map_err(|error| failed(&error))
}

/// Answers on the listener until one whole answer was the trace.
fn hand_out(listener: TcpListener, trace: &Path) -> io::Result<()> {
    let server = Server::from_listener(listener, None).map_err(io::Error::other)?;
    for request in server.incoming_requests() {
        let answered = match (request.method(), request.url()) {
            (Method::Get, TRACE) => {
                // The viewer shows how much of it has come.
                let response =
                    Response::from_file(File::open(trace)?).with_chunked_threshold(usize::MAX);
                match request.respond(allowed(response)) {
                    Ok(()) => return Ok(()),
                    error => error,
                }
            }
            // A browser asks first whether a page from elsewhere may read from this machine.
            (Method::Options, TRACE) => request.respond(allowed(Response::empty(204))),
            _ => request.respond(Response::empty(404)),
        };
        if let Err(error) = answered {
            say::warn(format!("the browser did not take all of it: {error}"));
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// For the viewer's page only.
fn allowed<R: Read>(response: Response<R>) -> Response<R> {
    let headers = [
        ("Access-Control-Allow-Origin", VIEWER),
        ("Access-Control-Allow-Private-Network", "true"),
        ("Cache-Control", "no-store"),
    ];
    headers
        .into_iter()
        .filter_map(|(name, value)| Header::from_bytes(name, value).ok())
        .fold(response, Response::with_header)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;
    use std::thread;

    use super::*;

    #[test]
    fn a_trace_is_handed_to_the_viewer_and_to_no_other_page() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(&trace, &bytes).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || hand_out(listener, &trace));
        let ask = |line: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                .unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            let body = answer.split_off(end);
            (String::from_utf8(answer).unwrap(), body)
        };
        assert!(ask("GET /etc/passwd").0.starts_with("HTTP/1.1 404"));
        let allowed = format!("Access-Control-Allow-Origin: {VIEWER}\r\n");
        let (head, _) = ask("OPTIONS /trace");
        assert!(head.starts_with("HTTP/1.1 204") && head.contains(&allowed), "{head}");
        assert!(head.contains("Access-Control-Allow-Private-Network: true"), "{head}");
        let (head, body) = ask("GET /trace");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(&allowed), "{head}");
        assert!(body == bytes, "{} of {} bytes", body.len(), bytes.len());
        server.join().unwrap().unwrap();
    }

    #[test]
    fn a_trace_is_known_by_how_it_begins() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let cases: [(&[u8], bool); 4] = [
            (&[0x0a, 0x05], true),
            (b"{\"displayTimeUnit\": \"ns\"", true),
            (b"<!DOCTYPE html>", false),
            (b"", false),
        ];
        for (bytes, expected) in cases {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(is_trace(&file), expected, "{bytes:?}");
        }
        assert!(!is_trace(directory.path()));
    }
}
