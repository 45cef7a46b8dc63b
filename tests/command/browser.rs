//! Pages in a real browser, Debian's Chromium without a display: does the policy let the script run, is the console silent,
//! and does a page fit its window?

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{Outcome, gyan, root, run, run_within};

/// Chromium comes from a network.
const INSTALLING: Duration = Duration::from_secs(900);

/// Opens a page as wide as asked for, waits for it, and writes down what it is like.
const LOOK: &str = r#"<!DOCTYPE html><meta charset="utf-8"><body><script>
const look = (file, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.width = width;
  frame.height = 900;
  frame.onload = () => {
    const page = frame.contentDocument;
    for (const part of page.querySelectorAll("details")) part.open = true;
    const head = page.querySelector("table.data th");
    head.querySelector("button")?.click();
    done({
      wide: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      sorted: head.getAttribute("aria-sort"),
      styled: frame.contentWindow.getComputedStyle(page.querySelector("nav")).display,
      images: [...page.images].every(image => image.complete && image.naturalWidth > 0),
    });
  };
  frame.src = file;
  document.body.append(frame);
});
(async () => {
  const seen = [];
  for (const file of FILES) for (const width of [1280, 400]) seen.push({ file, width, ...await look(file, width) });
  document.body.textContent = JSON.stringify(seen) + "END";
})();
</script>"#;

fn chromium() -> bool {
    let is_there = || Command::new("chromium").arg("--version").output().is_ok();
    if !is_there() {
        run_within(Command::new(root().join("scripts/packages")).arg("chromium"), INSTALLING);
    }
    is_there()
}

/// What Chromium makes of a page, and what it says.
fn opened(place: &Path, page: &Path) -> Outcome {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
    ]);
    // The page that looks reads those that it looks at.
    command.args(["--disable-web-security", "--allow-file-access-from-files"]);
    command.args(["--enable-logging=stderr", "--virtual-time-budget=60000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", place.join("browser").display()));
    command.arg(format!("file://{}", page.display())).env("HOME", place);
    run(&mut command)
}

fn looked_at(place: &Path, files: &[&str]) -> (Vec<serde_json::Value>, String) {
    let look = place.join("look.html");
    let files = serde_json::to_string(files).unwrap();
    fs::write(&look, LOOK.replace("FILES", &files)).unwrap();
    let outcome = opened(place, &look);
    let text = outcome.stdout.split_once("<body>").and_then(|(_, text)| text.split_once("END"));
    let (text, _) = text.unwrap_or_else(|| panic!("{}\n{}", outcome.stdout, outcome.stderr));
    let console = outcome.stderr.lines().filter(|line| line.contains("CONSOLE"));
    (serde_json::from_str(text).unwrap(), console.collect::<Vec<_>>().join("\n"))
}

#[test]
fn pages_fit_their_window_and_the_console_is_silent() {
    if !chromium() {
        assert!(
            std::env::var_os("CI").is_none(),
            "there is no chromium, and it cannot be installed"
        );
        println!("skipped: there is no chromium, and it cannot be installed");
        return;
    }
    let place = TempDir::new().unwrap();
    let mut files = Vec::new();
    for name in ["gyan.rank-1", "gyan.rank-1-running", "gyan.rank-1-queues", "gyan.rank-1-traffic"]
    {
        let page = place.path().join(format!("{name}.html"));
        let run_directory = root().join("tests/fixtures").join(name);
        let outcome =
            run(gyan().args(["report", "--format", "html", "-o"]).arg(&page).arg(run_directory));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        files.push(format!("{name}.html"));
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let (seen, console) = looked_at(place.path(), &names);
    assert_eq!((seen.len(), console.as_str()), (2 * files.len(), ""));
    for page in &seen {
        assert_eq!(page["wide"], 0, "{page}");
        assert_eq!(page["sorted"], "ascending", "{page}: the script did not run");
        assert_eq!(page["styled"], "flex", "{page}: the style does not apply");
        assert_eq!(page["images"], true, "{page}");
    }
    // What is not gyan's does not run, and the test would see it.
    let page = place.path().join(&files[0]);
    let changed = fs::read_to_string(&page).unwrap().replace("\"use strict\";", "\"use strict\"; ");
    fs::write(&page, changed).unwrap();
    let (seen, console) = looked_at(place.path(), &names[..1]);
    assert_eq!(seen[0]["sorted"], serde_json::Value::Null);
    assert!(console.contains("Content Security Policy"), "{console}");
}
