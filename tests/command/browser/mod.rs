//! Pages in a real browser, Debian's Chromium without a display: anyone who opens one, wide or narrow, light or
//! dark, with scripts or without, sees all of it, and nothing is requested from a network.

mod devtools;
mod many;
mod timelines;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{gyan, root, run, succeed};
use crate::differences::made_up_runs;
use crate::pages::spoiled;
use crate::reports::tune;
use devtools::Browser;

const WIDTHS: [u32; 2] = [1280, 400];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// The present state of a page.
const LOOK: &str = "(() => {
    for (const part of document.querySelectorAll('details')) part.open = true;
    const root = document.documentElement;
    return {
        over: root.scrollWidth - root.clientWidth,
        styled: getComputedStyle(document.querySelector('nav')).display,
        background: getComputedStyle(document.body).backgroundColor,
        sortable: document.querySelectorAll('th button').length,
        images: [...document.images].every(image => image.complete && image.naturalWidth > 0),
        text: document.body.innerText,
        findings: [...document.querySelectorAll('#findings .card h3')].map(title => title.textContent),
    };
})()";

/// What is shown when one points at the first pixels of a drawing; nothing if there is no such drawing.
const POINT: &str = "(async () => {
    const drawing = document.querySelector('DRAWING');
    if (!drawing) return null;
    drawing.scrollIntoView({ behavior: 'instant' });
    const box = drawing.getBoundingClientRect();
    const at = { clientX: box.left + 1, clientY: box.top + 1 };
    drawing.dispatchEvent(new PointerEvent('pointerenter', at));
    const tip = document.querySelector('.tip');
    for (let tries = 0; tries < 100 && tip.hidden; tries++) {
        await new Promise(done => setTimeout(done, 20));
        drawing.dispatchEvent(new PointerEvent('pointermove', at));
    }
    const said = tip.textContent;
    drawing.dispatchEvent(new PointerEvent('pointerleave', at));
    return said;
})()";

/// The timeline after each of these steps: how often the drawing is as wide as its frame, how many of its times are named, what the
/// tools say, and how far from the left edge of the frame the names of ranks are, in pixels.
const ZOOM: &str = "(async () => {
    const drawing = document.querySelector('svg.timeline'), frame = drawing.parentElement, seen = [];
    drawing.scrollIntoView({ behavior: 'instant' });
    const press = key => frame.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    const turn = ctrlKey => frame.dispatchEvent(
        new WheelEvent('wheel', { deltaY: -200, ctrlKey, clientX: frame.getBoundingClientRect().right, cancelable: true }));
    const buttons = [...document.querySelectorAll('.zoom button')];
    const name = document.querySelector('.timeline .rank');
    for (const step of [() => 0, () => buttons[0].click(), () => press('+'), () => frame.scrollLeft = 1e6, () => turn(false),
                        () => turn(true), () => buttons[1].click(), () => press('0')]) {
        step();
        await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        seen.push([
            Math.round(drawing.getBoundingClientRect().width / Math.max(frame.clientWidth, 880) * 10) / 10,
            document.querySelectorAll('.timeline .axis text').length,
            document.querySelector('.zoom output').textContent,
            Math.round(name.getBoundingClientRect().right - frame.getBoundingClientRect().left) < 64,
            buttons.map(button => button.disabled),
        ]);
    }
    return seen;
})()";

/// Levels A and AA of WCAG 2.0 and 2.1: what is wrong, where and why.
const CHECK: &str = "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations'] })
    .then(found => found.violations.map(of => `${of.id}: ${of.help}: ${of.nodes.slice(0, 3).map(node =>
        node.target + ' ' + node.any.concat(node.all, node.none).map(check => check.message)).join('; ')}`))";

/// Whether to skip the test; says so, and fails in CI.
fn skipped(what: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{what}, and it cannot be installed");
    println!("skipped: {what}, and it cannot be installed");
    true
}

fn page(place: &Path, name: &str, of: &Path) -> PathBuf {
    let page = place.join(format!("{name}.html"));
    succeed(gyan().args(["report", "--format", "html", "-o"]).arg(&page).arg(of));
    assert!(fs::metadata(&page).unwrap().len() < 1_000_000, "{name}");
    page
}

/// The pages to check, with the titles of their findings: small and large runs, queues, names that are scripts,
/// what changed between runs, and what a tune found.
fn pages(place: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let fixture = |name: &str| root().join("tests/fixtures").join(name);
    let one = place.join("one");
    fs::create_dir(&one).unwrap();
    // Its own world: one rank of one.
    let profile = fs::read_to_string(fixture("gyan.rank-1-running/rank-000000.json")).unwrap();
    let profile = profile.replacen("\"size\":4", "\"size\":1", 1);
    fs::write(one.join("rank-000000.json"), profile).unwrap();
    // Variables, hosts, commands and phases; and call sites.
    let [hostile, sites] = ["gyan.rank-1-running", "gyan.rank-1-sites"].map(spoiled);
    let read = |of: &TempDir| -> Value {
        serde_json::from_slice(&fs::read(of.path().join("rank-000000.json")).unwrap()).unwrap()
    };
    let mut profile = read(&hostile);
    profile["sites"] = read(&sites)["sites"].take();
    fs::write(hostile.path().join("rank-000000.json"), profile.to_string()).unwrap();
    let of_runs = [
        page(place, "one-rank", &one),
        page(place, "quickstart", &fixture("gyan.rank-1-quickstart")),
        page(place, "queues", &fixture("gyan.rank-1-queues")),
        page(place, "traffic", &fixture("gyan.rank-1-traffic")),
        page(place, "hostile", hostile.path()),
        page(place, "100000-ranks", &many::ranks(place)),
        page(place, "timeline", &timelines::recorded(place)),
    ];
    let with_titles = |page: PathBuf| {
        let titles = titles_of_findings(&page);
        (page, titles)
    };
    let mut pages: Vec<_> = of_runs.map(with_titles).into();
    let (runs, difference) = (made_up_runs(), place.join("difference.html"));
    let mut diff = gyan();
    diff.args(["diff", "--format", "html", "runs-a", "runs-b", "-o"]).arg(&difference);
    assert_eq!(run(diff.current_dir(runs.path())).code, 0);
    pages.push((difference, Vec::new()));
    pages.push((page(place, "tune", tune().path()), Vec::new()));
    pages
}

fn titles_of_findings(page: &Path) -> Vec<String> {
    let outcome = crate::common::report(page, &["--findings", "--format", "json"]);
    let answers: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let findings = answers["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["title"].as_str().unwrap().to_owned()).collect()
}

fn axe() -> Option<String> {
    let outcome = run(Command::new(root().join("scripts/packages")).arg("--axe"));
    (outcome.code == 0).then(|| fs::read_to_string(outcome.stdout.trim_end()).unwrap())
}

/// Nothing in the console, nothing from a network.
fn is_quiet(browser: &Browser, what: &str) {
    assert_eq!(browser.console(), [""; 0], "{what}");
    assert_eq!(browser.requests(), [""; 0], "{what}");
    assert!(!browser.was("Page.javascriptDialogOpening"), "{what}");
}

#[test]
fn pages_are_for_everybody_and_for_every_window() {
    if !devtools::is_there() && skipped("there is no chromium") {
        return;
    }
    let axe = axe();
    if axe.is_none() {
        skipped("there is no axe-core");
    }
    let place = TempDir::new().unwrap();
    let mut browser = Browser::start();
    let mut barriers = Vec::new();
    let mut pointed_at = [const { Vec::new() }; 3];
    for (page, titles) in pages(place.path()) {
        browser.new_tab();
        browser.open(&page);
        let mut backgrounds = Vec::new();
        for (width, scheme) in WIDTHS.iter().flat_map(|&width| SCHEMES.map(|of| (width, of))) {
            let what = format!("{} {width} {scheme}", page.display());
            browser.seen_as(width, scheme);
            let seen = browser.value_of(LOOK);
            assert_eq!(seen["over"], 0, "{what}: wider than the window");
            assert_eq!(seen["styled"], "flex", "{what}: the style does not apply");
            assert_ne!(seen["sortable"], 0, "{what}: the script did not run");
            assert_eq!(seen["images"], true, "{what}");
            backgrounds.push(seen["background"].clone());
        }
        let drawings = ["svg.curve", "#peers img.matrix", "#waiting img.matrix"];
        for (drawing, seen) in drawings.iter().zip(&mut pointed_at) {
            let said = browser.value_of(&POINT.replace("DRAWING", drawing));
            seen.extend(said.as_str().map(str::to_owned));
        }
        assert_eq!(backgrounds[0], backgrounds[2]);
        assert_ne!(backgrounds[0], backgrounds[1], "{}: dark is light", page.display());
        is_quiet(&browser, &page.display().to_string());
        if let Some(axe) = &axe {
            browser.value_of(axe);
            for (width, scheme) in WIDTHS.iter().flat_map(|&width| SCHEMES.map(|of| (width, of))) {
                browser.seen_as(width, scheme);
                let wrong = browser.value_of(CHECK);
                for wrong in wrong.as_array().unwrap() {
                    barriers.push(format!("{} {width} {scheme}: {wrong}", page.display()));
                }
            }
        }
        // Without scripts the content is the same.
        browser.new_tab();
        browser.call("Emulation.setScriptExecutionDisabled", &serde_json::json!({ "value": true }));
        browser.open(&page);
        for width in WIDTHS {
            browser.seen_as(width, "light");
            let seen = browser.value_of(LOOK);
            let what = format!("{} {width} without scripts", page.display());
            assert_eq!((&seen["over"], &seen["sortable"]), (&0.into(), &0.into()), "{what}");
            let shown = seen["findings"].as_array().unwrap().iter();
            // After their numbers.
            let shown: Vec<&str> =
                shown.filter_map(|title| title.as_str()?.split_once(". ")).map(|of| of.1).collect();
            assert_eq!(shown, titles, "{what}");
        }
        is_quiet(&browser, &page.display().to_string());
    }
    assert!(barriers.is_empty(), "{}", barriers.join("\n"));
    let [courses, matrices, waiting] = pointed_at;
    assert_eq!(courses, ["0.00 s to 0.0521 s: 2,097,152"; 2]);
    // In the first bin, of 7 hosts, all ranks but the last send to the next one.
    let hosts = "node00000-node00006";
    assert_eq!(matrices, [format!("{hosts} to {hosts}: 447,000,000 bytes")]);
    // 391 ranks, of which each waits half a second for the next one; the last one is in the next bin.
    assert_eq!(waiting, ["ranks 0-390 waited 195 s for ranks 0-390 to send"]);
}

#[test]
fn a_timeline_is_zoomed_by_buttons_keys_and_the_wheel() {
    if !devtools::is_there() && skipped("there is no chromium") {
        return;
    }
    let place = TempDir::new().unwrap();
    let page = page(place.path(), "timeline", &timelines::recorded(place.path()));
    let mut browser = Browser::start();
    browser.new_tab();
    browser.open(&page);
    for width in WIDTHS {
        browser.seen_as(width, "light");
        let seen = browser.value_of(ZOOM);
        let seen = seen.as_array().unwrap();
        println!("{width}: {seen:#?}");
        let factors: Vec<f64> = seen.iter().map(|of| of[0].as_f64().unwrap()).collect();
        // Of 1090 parts of the drawing 1000 become wider. The wheel alone scrolls the page.
        assert_eq!(factors, [1.0, 1.9, 3.8, 3.8, 3.8, 7.4, 3.8, 1.0], "{width}");
        assert!(seen.iter().all(|of| of[3] == true), "{width}: {seen:?}");
        let names: Vec<u64> = seen.iter().map(|of| of[1].as_u64().unwrap()).collect();
        assert!(names[0] < names[1] && names[1] < names[2], "{width}: {names:?}");
        let says: Vec<&str> = seen.iter().map(|of| of[2].as_str().unwrap()).collect();
        assert!(says[0].is_empty() && says[7].is_empty(), "{width}: {says:?}");
        assert!(says[1].contains(" to ") && says[3].ends_with(" to 2.997 ms"), "{width}: {says:?}");
        assert_eq!(seen[0], seen[7], "{width}");
        let disabled =
            [serde_json::json!([false, true, true]), serde_json::json!([false, false, false])];
        assert_eq!([&seen[0][4], &seen[1][4]], [&disabled[0], &disabled[1]], "{width}");
    }
    is_quiet(&browser, "zoomed");
    if let Some(axe) = axe() {
        browser.value_of(&axe);
        browser.value_of("document.querySelector('.zoom button').click()");
        assert_eq!(browser.value_of(CHECK), serde_json::json!([]));
    }
}

/// `scripts/docs screenshots` compresses them.
#[test]
#[ignore = "writes docs/images: scripts/docs screenshots"]
fn screenshots() {
    let place = TempDir::new().unwrap();
    let page = page(place.path(), "page", &root().join("tests/fixtures/gyan.rank-1-quickstart"));
    let images = root().join("docs/images");
    fs::create_dir_all(&images).unwrap();
    let mut browser = Browser::start();
    browser.new_tab();
    browser.open(&page);
    for (name, width, scheme, height) in
        [("page", 1280, "light", 1195), ("page-dark", 400, "dark", 1240)]
    {
        browser.seen_as(width, scheme);
        let clip =
            serde_json::json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wanted =
            serde_json::json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let image = browser.call("Page.captureScreenshot", &wanted);
        let image = STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
        fs::write(images.join(format!("{name}.png")), image).unwrap();
    }
}

#[test]
fn what_is_not_gyans_does_not_run_in_a_page() {
    if !devtools::is_there() && skipped("there is no chromium") {
        return;
    }
    let place = TempDir::new().unwrap();
    let page = page(place.path(), "page", &root().join("tests/fixtures/gyan.rank-1"));
    let changed = fs::read_to_string(&page).unwrap().replace("\"use strict\";", "\"use strict\"; ");
    fs::write(&page, changed.replace("</main>", "<img src=https://example.org/x.png></main>"))
        .unwrap();
    let mut browser = Browser::start();
    browser.new_tab();
    browser.open(&page);
    // The test above would see it.
    assert_eq!(browser.value_of(LOOK)["sortable"], 0);
    let console = browser.console().join("\n");
    assert_eq!(console.matches("Content Security Policy").count(), 2, "{console}");
    assert!(console.contains("script-src") && console.contains("img-src"), "{console}");
}

/// A notebook's own style, as that of `JupyterLab`, with a table of its own.
const NOTEBOOK: &str = "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>a notebook</title><style>
    body { background: #fff; color: #000 } body[data-jp-theme-light=false] { background: #111; color: #eee }
    .output table { margin: 0 7px; font-size: 10px } .output td { text-align: right }
    .output tbody tr:nth-child(odd) { background: #ddd } .output h2 { font-size: 40px }
    </style><body><main class=output><h1>Cells</h1><table id=own><tbody><tr><td>1</td></tr></tbody></table>";

/// The colours in a fragment, and what its style makes of the notebook's own table.
const LOOK_AT_FRAGMENTS: &str = "(() => {
    for (const part of document.querySelectorAll('details')) part.open = true;
    const style = of => getComputedStyle(document.querySelector(of));
    const has = document.querySelector('.gyan') !== null;
    const own = ['margin', 'fontSize', 'color', 'width'].map(name => style('#own')[name]);
    return {
        background: has && style('.gyan').backgroundColor,
        row: has && style('.gyan .data tbody tr').backgroundColor,
        title: has && style('.gyan h2').fontSize,
        own: own.concat(style('#own td').textAlign, style('#own tr').backgroundColor, style('h1').fontSize),
    };
})()";

#[test]
fn a_fragment_keeps_to_itself_and_follows_the_theme_of_the_notebook() {
    if !devtools::is_there() && skipped("there is no chromium") {
        return;
    }
    let place = TempDir::new().unwrap();
    let notebook = place.path().join("notebook.html");
    fs::write(&notebook, NOTEBOOK).unwrap();
    let mut browser = Browser::start();
    browser.new_tab();
    browser.open(&notebook);
    browser.seen_as(WIDTHS[0], "light");
    let own = ["true", "false"].map(|theme| {
        browser.value_of(&format!("document.body.dataset.jpThemeLight = '{theme}'"));
        browser.value_of(LOOK_AT_FRAGMENTS)["own"].clone()
    });
    let mut cells = NOTEBOOK.to_owned();
    for (fixture, part) in [("queues", ""), ("traffic", "=peers"), ("quickstart", "")] {
        let option = format!("--fragment{part}");
        let mut report = gyan();
        report.args(["report", "--format", "html", &option]);
        report.arg(root().join(format!("tests/fixtures/gyan.rank-1-{fixture}")));
        cells.push_str(&run(&mut report).stdout);
    }
    fs::write(&notebook, cells).unwrap();
    let axe = axe();
    for scheme in SCHEMES {
        for (theme, own, background) in
            [("true", &own[0], "rgb(255, 255, 255)"), ("false", &own[1], "rgb(20, 23, 28)")]
        {
            browser.new_tab();
            browser.open(&notebook);
            browser.seen_as(WIDTHS[0], scheme);
            browser.value_of(&format!("document.body.dataset.jpThemeLight = '{theme}'"));
            let seen = browser.value_of(LOOK_AT_FRAGMENTS);
            assert_eq!(&seen["own"], own, "the style leaks");
            assert_eq!(seen["background"], background, "{scheme} {theme}");
            assert_eq!(seen["row"], "rgba(0, 0, 0, 0)", "the notebook's stripes");
            assert_ne!(seen["title"], "40px");
            if let Some(axe) = &axe {
                browser.value_of(axe);
                assert_eq!(browser.value_of(CHECK), serde_json::json!([]), "{scheme} {theme}");
            }
            is_quiet(&browser, "fragments");
        }
        // Without a theme that of the system.
        browser.new_tab();
        browser.open(&notebook);
        browser.seen_as(WIDTHS[0], scheme);
        let background = if scheme == "dark" { "rgb(20, 23, 28)" } else { "rgb(255, 255, 255)" };
        assert_eq!(browser.value_of(LOOK_AT_FRAGMENTS)["background"], background);
    }
}
