//! The page of a run: one file that needs nothing else, whatever names it contains, and that can be read like a
//! run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Outcome, gyan, report, root, run};
use crate::golden::is_golden;

const FIXTURES: [&str; 5] = [
    "gyan.rank-1",
    "gyan.rank-1-running",
    "gyan.rank-1-sites",
    "gyan.rank-1-queues",
    "gyan.rank-1-traffic",
];

/// A text that would run, end an attribute, or end an element.
const HOSTILE: &str = "<script>alert(1)</script>\"'></svg></title><img src=x onerror=alert(2)>";

fn page_of(directory: &Path) -> String {
    let outcome = report(directory, &["--format", "html"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    outcome.stdout
}

fn fixture(name: &str) -> PathBuf {
    Path::new("tests/fixtures").join(name)
}

/// The content of a page: without style, script and summary, which have their own tests.
fn shown(page: &str) -> &str {
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, rest) = body.split_once("<script>").unwrap();
    assert!(rest.ends_with("</body></html>\n"));
    body
}

#[test]
fn the_page_is_the_golden_one() {
    let page = page_of(&fixture("gyan.rank-1-running"));
    // A line for each part, so that a difference can be read.
    let lines = shown(&page).replace("<section", "\n<section").replace("<tr", "\n<tr");
    is_golden("running.html", &lines.replace("<figure", "\n<figure"));
}

#[test]
fn pages_are_small_and_need_nothing_else() {
    for name in FIXTURES {
        let page = page_of(&fixture(name));
        assert!(page.len() < 300_000, "{name}: {} bytes", page.len());
        assert!(page.starts_with("<!DOCTYPE html>"));
        assert!(page.contains("content=\"default-src 'none'; img-src data:; style-src 'sha256-"));
        let body = shown(&page);
        for outside in ["http:", "https:", "src=\"/", "<link", "<iframe", "style=\"", " onclick"] {
            assert!(!body.contains(outside), "{name}: {outside}");
        }
        // Every link goes to a part of the page.
        for link in body.split("href=\"").skip(1) {
            let (to, _) = link.split_once('"').unwrap();
            let id = to.strip_prefix('#').unwrap_or_else(|| panic!("{name}: {to}"));
            assert!(body.contains(&format!("id=\"{id}\"")), "{name}: {to}");
        }
        for drawing in body.split("role=\"img\"").skip(1) {
            assert!(
                drawing.contains("<title id=") || drawing.starts_with(" aria-label="),
                "{name}: a drawing without a name"
            );
        }
    }
}

/// The names of the parts of a page, as the refusal of another one says them.
fn parts_of(directory: &Path) -> Vec<String> {
    let outcome = report(directory, &["--format", "html", "--fragment=nonsense"]);
    let (_, names) = refused(&outcome).trim_end().split_once("name one of ").unwrap();
    names.split(", ").map(str::to_owned).collect()
}

/// The identifiers in a page.
fn ids(page: &str) -> Vec<&str> {
    page.split(" id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

#[test]
fn a_fragment_has_what_the_page_has_and_fits_beside_others() {
    let mut all = Vec::new();
    for name in FIXTURES {
        let page = page_of(&fixture(name));
        let names = parts_of(&fixture(name));
        assert!(names.len() > 4, "{name}: {names:?}");
        for part in [vec![String::new()], names].concat() {
            let option = format!("--fragment={part}");
            let option = if part.is_empty() { "--fragment" } else { &option };
            let outcome = report(fixture(name), &["--format", "html", option]);
            assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name} {part}");
            let fragment = outcome.stdout;
            assert!(fragment.len() < 150_000, "{name} {part}: {}", fragment.len());
            assert!(fragment.starts_with("<div class=\"gyan\"><style>.gyan{"), "{name} {part}");
            assert!(fragment.ends_with("</div>\n"));
            for outside in
                ["http:", "https:", "<script", "<link", "<html", " onclick", ":root", "@import"]
            {
                assert!(!fragment.contains(outside), "{name} {part}: {outside}");
            }
            let ids = ids(&fragment);
            let (prefix, _) = ids[0].split_at("gyan-01234567-".len());
            assert!(ids.iter().all(|id| id.starts_with(prefix)), "{name} {part}: {ids:?}");
            // The part itself is that of the page.
            let content = fragment.replace(prefix, "");
            if let Some((_, section)) = content.split_once(&format!("<section id=\"{part}\"")) {
                let (section, _) = section.split_once("</section>").unwrap();
                assert!(page.contains(section), "{name} {part}");
            } else {
                assert_eq!(part, "", "{name}");
            }
            all.extend(ids.into_iter().map(str::to_owned));
        }
    }
    let number = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), number, "two fragments share an identifier");
}

/// Adds a script to each text of a profile whose key says that it is a name that others choose.
fn spoil(value: &mut Value, key: &str) {
    const KEYS: [&str; 17] = [
        "name",
        "host",
        "object",
        "command",
        "library",
        "library_path",
        "device",
        "function",
        "communicator",
        "state",
        "warnings",
        "advice",
        "reason",
        "value",
        "text",
        "model",
        "path",
    ];
    match value {
        Value::String(text) if KEYS.contains(&key) => text.push_str(HOSTILE),
        Value::Array(list) => list.iter_mut().for_each(|of| spoil(of, key)),
        Value::Object(map) => map.iter_mut().for_each(|(key, of)| spoil(of, key)),
        _ => {}
    }
}

/// A run whose names are hostile.
pub(crate) fn spoiled(fixture: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    for entry in fs::read_dir(root().join("tests/fixtures").join(fixture)).unwrap() {
        let file = entry.unwrap();
        let mut profile: Value =
            serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
        spoil(&mut profile, "");
        profile["tool"]["name"] = "gyan".into();
        fs::write(directory.path().join(file.file_name()), profile.to_string()).unwrap();
    }
    directory
}

#[test]
fn names_are_text_whatever_they_hold() {
    for name in FIXTURES {
        let directory = spoiled(name);
        let page = page_of(directory.path());
        let (head, _) = page.split_once("<body>").unwrap();
        assert!(head.contains("&lt;script&gt;alert(1)") && !head.contains("<script>"), "{name}");
        let body = shown(&page);
        // At least variables, hosts and commands.
        assert!(body.matches("&lt;script&gt;alert(1)&lt;/script&gt;&quot;").count() > 10, "{name}");
        let fragment = report(directory.path(), &["--format", "html", "--fragment"]).stdout;
        assert!(fragment.contains("&lt;script&gt;alert(1)"), "{name}");
        for raw in ["<script", "<img src=x", "\"'>"] {
            assert!(!body.contains(raw) && !fragment.contains(raw), "{name}: {raw}");
        }
        assert_eq!(page.matches("<script").count(), 2, "{name}");
    }
}

#[test]
fn a_page_is_read_like_a_run() {
    let place = TempDir::new().unwrap();
    for name in FIXTURES {
        let file = place.path().join(format!("{name}.html"));
        let outcome = report(fixture(name), &["--format", "html", "-o", file.to_str().unwrap()]);
        assert_eq!(outcome.stdout.trim_end(), file.to_str().unwrap());
        for options in [&["--all"][..], &["--format", "json"], &["--format", "csv"]] {
            let [of_page, of_run] = [&file, &fixture(name)].map(|from| report(from, options));
            assert_eq!((of_page.code, of_page.stderr.as_str()), (0, ""), "{name}");
            // Findings contain the given names.
            let run = of_run.stdout.replace(fixture(name).to_str().unwrap(), "RUN");
            assert_eq!(of_page.stdout.replace(file.to_str().unwrap(), "RUN"), run, "{name}");
        }
    }
}

#[test]
fn what_a_page_has_without_single_ranks_is_exported() {
    let place = TempDir::new().unwrap();
    let export = |from: &Path, options: &[&str]| {
        let format = if options.contains(&"-o") { "jsonl" } else { "csv" };
        run(gyan().args(["export", "--format", format]).arg(from).args(options).current_dir(root()))
    };
    let page = place.path().join("page.html");
    let run_directory = fixture("gyan.rank-1-traffic");
    report(&run_directory, &["--format", "html", "-o", page.to_str().unwrap()]);
    // The same rows as the report of the run has for other programs.
    for (table, options) in [
        ("summary", &[][..]),
        ("summary_peers", &["--peers"]),
        ("summary_histograms", &["--histogram", "*"]),
    ] {
        let of_page = export(&page, &["--table", table]);
        assert_eq!((of_page.code, of_page.stderr.lines().count()), (0, 1), "{}", of_page.stderr);
        assert!(of_page.stderr.contains("no rows of single ranks"), "{}", of_page.stderr);
        let of_run = report(&run_directory, &[&["--format", "csv"], options].concat());
        assert_eq!(of_page.stdout, of_run.stdout);
    }
    assert_eq!(export(&page, &[]).stdout, export(&page, &["--table", "summary"]).stdout);
    let unknown = export(&page, &["--calls"]);
    assert!(refused(&unknown).contains("--table calls: is not in a summary"));
    let tables = place.path().join("tables/");
    let all = export(&page, &["-o", &format!("{}/", tables.display())]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(all.stdout.contains("tables of the summary exported to"), "{}", all.stdout);
    let peers = fs::read_to_string(tables.join("summary_peers.jsonl")).unwrap();
    assert_eq!(
        peers.lines().count(),
        export(&page, &["--table", "summary_peers"]).stdout.lines().count() - 1
    );
    // A directory with a summary and no profiles is the same.
    let only = place.path().join("only");
    fs::create_dir(&only).unwrap();
    let summary = report(&run_directory, &["--format", "json"]).stdout;
    fs::write(only.join("summary.json"), summary).unwrap();
    assert_eq!(export(&only, &[]).stdout, export(&page, &[]).stdout);
}

fn refused(outcome: &Outcome) -> &str {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    &outcome.stderr
}

#[test]
fn damaged_and_foreign_pages_are_refused_in_one_line() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("page.html");
    let page = page_of(&fixture("gyan.rank-1"));
    let summary = page.find("id=\"gyan-summary\">").unwrap() + 18;
    let mut flipped = page.clone();
    flipped.replace_range(summary + 40..summary + 48, "AAAAAAAA");
    for (text, why) in [
        ("<!DOCTYPE html><p>news", "is a page without the summary of a run"),
        (&page[..summary - 100], "is a page without the summary of a run"),
        (&page[..summary + 400], "its summary is damaged: the page is cut short"),
        (&flipped, "its summary is"),
    ] {
        fs::write(&file, text).unwrap();
        let outcome = report(&file, &[]);
        assert!(refused(&outcome).contains(why), "{}", outcome.stderr);
    }
    fs::write(&file, &page).unwrap();
    let reduced = run(gyan().arg("reduce").arg(&file));
    assert!(refused(&reduced).contains("is a page, and holds a summary"));
    let series = report(&file, &["--series", "*"]);
    assert!(refused(&series).contains("only the profiles of the ranks have a series"));
}

#[test]
fn what_does_not_go_with_a_page_is_refused() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("page.html");
    let (file, old) = (file.to_str().unwrap(), fixture("gyan.rank-1"));
    let parts = report(&old, &["--format", "html", "--sites"]);
    assert!(refused(&parts).contains("the page has every part"));
    let element = report(&old, &["--fragment"]);
    assert!(refused(&element).contains("--fragment: is for --format html only"));
    let text = report(&old, &["-o", file]);
    assert!(refused(&text).contains("is for --format html only"));
    assert!(!Path::new(file).exists());
    fs::write(file, "mine").unwrap();
    let there = report(&old, &["--format", "html", "-o", file]);
    assert!(refused(&there).contains("already exists"));
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    let forced = report(&old, &["--format", "html", "-o", file, "--force"]);
    assert_eq!(forced.code, 0);
    assert_eq!(fs::read_to_string(file).unwrap(), page_of(&old));
}

#[test]
fn open_writes_the_page_into_the_directory_and_names_it() {
    let directory = TempDir::new().unwrap();
    for entry in fs::read_dir(root().join("tests/fixtures/gyan.rank-1")).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
    }
    let page = directory.path().join("report.html");
    let open = |what: &Path| {
        run(gyan().arg("open").arg(what).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY"))
    };
    // Also when it already exists, and when the page itself is named.
    for what in [directory.path(), directory.path(), &page] {
        let outcome = open(what);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        assert_eq!(outcome.stdout.trim_end(), page.to_str().unwrap());
        assert!(fs::read_to_string(&page).unwrap().contains("id=\"gyan-summary\""));
    }
    assert_eq!(open(Path::new("/nowhere")).code, 2);
}

#[test]
fn run_refuses_a_page_that_cannot_be_before_it_runs_anything() {
    let place = TempDir::new().unwrap();
    let (file, ran) = (place.path().join("page.html"), place.path().join("ran"));
    fs::write(&file, "mine").unwrap();
    let started = |ranks: &[(&str, &str)]| {
        let mut command = gyan();
        command.args(["run", "--html"]).arg(&file).args(["--", "touch"]).arg(&ran);
        for name in ["PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"] {
            command.env_remove(name);
        }
        run(command.envs(ranks.iter().copied()).current_dir(place.path()))
    };
    assert!(refused(&started(&[])).contains("already exists"));
    assert!(refused(&started(&[("PMIX_RANK", "0")])).contains("a rank that a launcher started"));
    assert!(!ran.exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
