//! What does `gyan pages` make of a history whose truth is known?

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{gyan, root, run};

const RUNS: usize = 40;

/// The name of a commit, like a hash.
fn commit(at: usize) -> String {
    format!("{:08x}", 0xabc0_0000_u32 + u32::try_from(at).unwrap()).repeat(5)
}

/// Summaries of runs, of which each takes `level` times as long, give or take 2 %. The commits are in the order of the days.
fn history(place: &Path, level: impl Fn(usize) -> f64) {
    let text = fs::read_to_string(root().join("results-schema/examples/summary.json")).unwrap();
    let like: Value = serde_json::from_str(&text).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for at in 0..RUNS {
        let mut summary = like.clone();
        let longer = level(at) * (1.0 + 0.02 * (random.f64() + random.f64() - 1.0));
        summary["run_s"] = json!(null);
        summary["job"]["elapsed_s"] = json!(10.0 * longer);
        summary["job"]["known_until_s"] = json!(null);
        summary["job"]["id"] = json!(format!("job-{at}"));
        summary["job"]["started"] =
            json!(format!("2026-{:02}-{:02}T04:00:00Z", 1 + at / 28, 1 + at % 28));
        summary["job"]["labels"] = json!([{ "name": "commit", "value": commit(at) }]);
        summary["ranks"]["ended_badly"] = json!([]);
        let directory = place.join(format!("run-{at}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("summary.json"), summary.to_string()).unwrap();
    }
}

/// All that links in a page lead to.
fn links(page: &str) -> Vec<&str> {
    let links = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    links.filter(|link| !link.starts_with('#')).collect()
}

#[test]
fn the_commit_that_made_a_program_slower_is_named() {
    let place = tempfile::tempdir().unwrap();
    let (runs, site) = (place.path().join("history"), place.path().join("public"));
    history(&runs, |at| if at < 22 { 1.0 } else { 1.08 });
    let of = run(gyan().arg("pages").arg(&runs).arg("-o").arg(&site));
    assert!(of.stdout.contains("slower since "), "{}{}", of.stdout, of.stderr);
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    let named: Vec<usize> = (0..RUNS)
        .filter(|at| index.contains(&format!("slower since {}", &commit(*at)[..8])))
        .collect();
    assert!(matches!(named[..], [21..=23]), "{named:?}");
    // Every link leads to a file of the site, so it works from a disk.
    let links = links(&index);
    assert!(links.len() > RUNS, "{links:?}");
    for link in links {
        assert!(site.join(link).is_file(), "{link}");
    }
    let badge: Value =
        serde_json::from_str(&fs::read_to_string(site.join("badge.json")).unwrap()).unwrap();
    assert_eq!(badge["schemaVersion"], 1);
    assert!(badge["message"].as_str().unwrap().contains("slower since"), "{badge}");
    roxmltree::Document::parse(&fs::read_to_string(site.join("badge.svg")).unwrap()).unwrap();
}

#[test]
fn a_history_without_a_change_says_so_also_when_the_site_is_inside_it() {
    let place = tempfile::tempdir().unwrap();
    history(place.path(), |_| 1.0);
    let site = place.path().join("public");
    for _ in 0..2 {
        let of = run(gyan().arg("pages").arg(place.path()).arg("-o").arg(&site));
        assert!(
            of.stdout.contains("No change of the run was found in 40 commits"),
            "{}",
            of.stdout
        );
    }
    let of = run(gyan().args(["pages", "--last", "5"]).arg(place.path()).arg("-o").arg(&site));
    assert!(of.stdout.contains("here are 5"), "{}", of.stdout);
}
