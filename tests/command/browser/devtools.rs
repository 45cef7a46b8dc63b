//! One headless Chromium, controlled over a pipe with the `DevTools` protocol: JSON messages, each terminated
//! by a NUL.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use wait_timeout::ChildExt;

use crate::common::{root, run_within};

/// Chromium comes from a network.
const INSTALLING: Duration = Duration::from_secs(900);
/// The timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(120);
const LEAVING: Duration = Duration::from_secs(5);

pub(super) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    calls: u64,
    /// The page that it shows.
    session: Option<String>,
    /// Events that arrived unrequested.
    pub(super) events: Vec<Value>,
    _place: TempDir,
}

/// Whether Chromium is available; tries to install it if not.
pub(super) fn is_there() -> bool {
    let is_there = || Command::new("chromium").arg("--version").output().is_ok();
    if !is_there() {
        run_within(Command::new(root().join("scripts/packages")).arg("chromium"), INSTALLING);
    }
    is_there()
}

impl Browser {
    pub(super) fn start() -> Browser {
        let place = TempDir::new().unwrap();
        let [to, from] = ["to", "from"].map(|name| place.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let log = File::create(place.path().join("log")).unwrap();
        let mut command = Command::new("sh");
        // Chromium reads from 3 and writes to 4.
        command.args(["-c", "exec chromium \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]);
        command.args(["--disable-background-networking", "--no-first-run"]);
        command.arg(format!("--user-data-dir={}", place.path().join("profile").display()));
        command.env("TO", &to).env("FROM", &from).env("HOME", place.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        // Does not block until somebody reads.
        let to = OpenOptions::new().read(true).write(true).open(to).unwrap();
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let messages = BufReader::new(File::open(from).unwrap());
            for message in messages.split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
            }
        });
        let (calls, session, events) = Default::default();
        Browser { child, to, from: receiver, calls, session, events, _place: place }
    }

    /// Calls a method; returns its result.
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = self.next(method);
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn next(&mut self, why: &str) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{why}: {error}"))
    }

    fn wait_for(&mut self, event: &str) {
        while !self.was(event) {
            let next = self.next(event);
            self.events.push(next);
        }
    }

    /// Whether that event happened.
    pub(super) fn was(&self, event: &str) -> bool {
        self.events.iter().any(|seen| seen["method"] == event)
    }

    /// A new tab for what follows, which reports everything that it does.
    pub(super) fn new_tab(&mut self) {
        self.session = None;
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call("Target.attachToTarget", &attach);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
        self.events.clear();
    }

    /// Opens a file and waits until it is complete.
    pub(super) fn open(&mut self, file: &Path) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        self.wait_for("Page.loadEventFired");
    }

    /// Emulates a screen of that width, in CSS pixels, and a preference for light or dark.
    pub(super) fn seen_as(&mut self, width: u32, scheme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// The value of an expression, or a promise, in the page.
    pub(super) fn value_of(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].take()
    }

    /// Everything in the console.
    pub(super) fn console(&self) -> Vec<String> {
        let is_said = |event: &&Value| {
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"]
                .contains(&event["method"].as_str().unwrap_or_default())
        };
        self.events.iter().filter(is_said).map(|event| event["params"].to_string()).collect()
    }

    /// Every request for something that is neither a file nor in the page.
    pub(super) fn requests(&self) -> Vec<&str> {
        let asked = self.events.iter().filter(|of| of["method"] == "Network.requestWillBeSent");
        let addresses = asked.filter_map(|event| event["params"]["request"]["url"].as_str());
        addresses.filter(|of| !of.starts_with("file:") && !of.starts_with("data:")).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "Browser.close" });
        let _ = self.to.write_all(format!("{close}\0").as_bytes());
        if let Ok(Some(_)) = self.child.wait_timeout(LEAVING) {
            return;
        }
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}
