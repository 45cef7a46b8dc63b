//! `gyan archive ingest`: each record once, whatever happens to the ingester, and whatever users put into the spool.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gyan_results::{JobRecord, RECORD_SCHEMA, RankProfile, Reduction, parse_rank};
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

use crate::common::{Outcome, command, gyan, one_line, python_with, root, run, succeed};

const TABLES: [&str; 5] = ["jobs", "functions", "findings", "hosts", "records"];

/// The record of the job of this number: `jobs_a_day` of them end on a day.
fn record(job: u32, jobs_a_day: u32) -> Vec<u8> {
    let example = fs::read(root().join("results-schema/examples/rank.json")).unwrap();
    let example = parse_rank(&example).unwrap();
    let mut reduction = Reduction::default();
    for rank in 0..6 {
        let mut profile = RankProfile { rank, size: 6, ..example.clone() };
        profile.host = format!("n{:04}", job % 5 + rank / 2);
        for call in &mut profile.calls {
            call.count += u64::from(job % 97 + rank);
        }
        reduction.add(&format!("rank-{rank}"), &profile);
    }
    let mut summary = reduction.finish().unwrap();
    summary.job.started = format!("2026-03-{:02}T10:{:02}:00Z", 1 + job / jobs_a_day, job % 60);
    let record = JobRecord {
        schema: RECORD_SCHEMA.into(),
        cluster: "tests".into(),
        job: job.to_string(),
        step: Some("0".into()),
        user: 0,
        program: format!("app{}", job % 3),
        left_out: Vec::new(),
        summary,
    };
    record.into_bytes().unwrap()
}

/// A spool with records, and a place for an archive.
struct Site {
    directory: TempDir,
}

impl Site {
    fn new() -> Site {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("spool")).unwrap();
        let mode = Permissions::from_mode(0o3733);
        fs::set_permissions(directory.path().join("spool"), mode).unwrap();
        Site { directory }
    }

    fn with_jobs(jobs: u32, jobs_a_day: u32) -> Site {
        let site = Site::new();
        for job in 0..jobs {
            site.put(&name(job), &record(job, jobs_a_day));
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str, content: &[u8]) {
        fs::write(self.path("spool").join(name), content).unwrap();
    }

    fn ingest(&self) -> Outcome {
        run(gyan().args(["archive", "ingest", "spool", "archive"]).current_dir(&self.directory))
    }

    fn start(&self) -> Child {
        gyan()
            .args(["archive", "ingest", "spool", "archive"])
            .current_dir(&self.directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// The rows of each table, as text, sorted.
    fn rows(&self) -> BTreeMap<&'static str, Vec<String>> {
        TABLES.map(|table| (table, rows(&self.path("archive").join(table)))).into()
    }

    /// The records that wait.
    fn waiting(&self) -> usize {
        let entries = fs::read_dir(self.path("spool")).unwrap();
        let names =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap_or_default());
        names.filter(|name| !name.starts_with('.') && name != "refused").count()
    }
}

fn name(job: u32) -> String {
    format!("0-{job}-0-{:08x}.gyan-record", job.wrapping_mul(2_654_435_761))
}

/// The rows in the files of a table, sorted.
fn rows(table: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for day in fs::read_dir(table).into_iter().flatten() {
        for file in fs::read_dir(day.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with('.') {
                continue;
            }
            let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
            rows.extend(reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()));
        }
    }
    rows.sort();
    rows
}

/// What an archive has of these jobs where nothing went wrong.
fn truth(jobs: u32, jobs_a_day: u32) -> BTreeMap<&'static str, Vec<String>> {
    let site = Site::with_jobs(jobs, jobs_a_day);
    assert_eq!(site.ingest().code, 0);
    let rows = site.rows();
    assert_eq!(rows["jobs"].len(), jobs as usize);
    assert!(rows.values().all(|rows| rows.len() >= jobs as usize), "each job has some of each");
    rows
}

#[test]
fn a_job_is_added_once() {
    let site = Site::with_jobs(50, 20);
    let outcome = site.ingest();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.stdout, "50 jobs added\n");
    assert_eq!(site.waiting(), 0);
    let rows = site.rows();
    let days = fs::read_dir(site.path("archive/jobs")).unwrap().count();
    assert_eq!((rows["jobs"].len(), days), (50, 3));
    // The same again, under other names, twice, and one that is new.
    for job in 49..51 {
        site.put(&name(job), &record(job, 20));
        site.put(&name(job + 1000), &record(job, 20));
    }
    assert_eq!(site.ingest().stdout, "1 job added, 3 known already\n");
    assert_eq!(site.rows()["jobs"].len(), 51);
}

#[test]
fn several_ingesters_at_once_add_each_job_once() {
    let truth = truth(200, 100);
    let site = Site::with_jobs(200, 100);
    let ingesters: Vec<Child> = (0..4).map(|_| site.start()).collect();
    for mut ingester in ingesters {
        assert!(ingester.wait().unwrap().success());
    }
    assert_eq!(site.rows(), truth);
}

/// Kills the ingester at each of its changes of a file, one after the other.
#[test]
fn an_ingester_that_is_killed_is_finished_by_the_next() {
    // As many batches on the first day as stay small files, and one more.
    let jobs = 16 + 2;
    let truth = truth(jobs, 17);
    let prepared = Site::new();
    for job in 0..16 {
        prepared.put(&name(job), &record(job, 17));
        assert_eq!(prepared.ingest().code, 0);
    }
    let changes = "trace=/^(rename|unlink|fsync|mkdir|flock)";
    let (mut killed, mut at) = (0, 1);
    loop {
        let site = Site::new();
        let copied =
            run(command(&["cp", "-a"]).arg(prepared.path("archive")).arg(site.path("archive")));
        assert_eq!(copied.code, 0);
        for job in 16..jobs {
            site.put(&name(job), &record(job, 17));
        }
        let mut strace = command(&["strace", "-f", "-qq", "-o", "/dev/null", "-e", changes, "-e"]);
        strace.arg(format!("inject=/^(rename|unlink|fsync|mkdir|flock):signal=KILL:when={at}"));
        let ingest = gyan();
        strace.arg(ingest.get_program()).args(["archive", "ingest", "spool", "archive"]);
        // strace counts what each thread does.
        strace.env("RAYON_NUM_THREADS", "1").current_dir(&site.directory);
        let is_over = run(&mut strace).code == 0;
        if !is_over {
            killed += 1;
            let outcome = site.ingest();
            assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "killed at {at}");
        }
        assert!(site.rows() == truth, "killed at {at}");
        let begun = fs::read_dir(site.path("spool/.ingest")).unwrap();
        assert_eq!((site.waiting(), begun.count()), (0, 1), "nothing but the lock");
        if is_over {
            break;
        }
        at += 1;
    }
    println!("killed {killed} times");
    assert!(killed > 80, "{killed}");
}

#[test]
fn what_users_put_into_a_spool_harms_nobody() {
    let truth = truth(20, 20);
    let site = Site::with_jobs(20, 20);
    let spool = site.path("spool");
    let good = record(0, 20);
    // Not a file, or not only a record's.
    let secret = site.path("secret");
    fs::write(&secret, &good).unwrap();
    symlink(&secret, spool.join("0-1-0-a.gyan-record")).unwrap();
    symlink("/dev/zero", spool.join("0-1-0-b.gyan-record")).unwrap();
    fs::hard_link(&secret, spool.join("0-1-0-c.gyan-record")).unwrap();
    assert_eq!(run(command(&["mkfifo"]).arg(spool.join("0-1-0-d.gyan-record"))).code, 0);
    fs::create_dir_all(spool.join("0-1-0-e.gyan-record/inside")).unwrap();
    fs::create_dir_all(spool.join("0-1-0-f.gyan-record")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(spool.join("g.gyan-record")).unwrap();
    // Damaged.
    site.put("empty.gyan-record", b"");
    site.put("long.gyan-record", &vec![0; 1 << 20]);
    site.put("cut.gyan-record", &good[..good.len() / 2]);
    site.put("\u{1b}[2J\n..\u{202e}.gyan-record", b"gyan.record/1\nnothing");
    let mut newer = JobRecord::from_bytes(&good).unwrap();
    newer.schema = "gyan.record/9".into();
    site.put("newer.gyan-record", &newer.into_bytes().unwrap());
    // Not the ingester's business.
    site.put("notes.txt", b"");
    site.put(".0-1-0-h.gyan-record", &good);
    let outcome = site.ingest();
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stdout.starts_with("20 jobs added, 12 refused"), "{outcome:?}");
    assert!(!outcome.stderr.contains('\u{1b}'));
    assert_eq!(site.rows(), truth);
    assert!(secret.exists());
    let counts = fs::read_to_string(spool.join("refused/counts.csv")).unwrap();
    assert!(counts.starts_with("user,reason,records\n"), "{counts}");
    for reason in ["no_file,7", "too_long,1", "damaged,3", "newer,1"] {
        assert!(counts.contains(reason), "{reason}: {counts}");
    }
    // The next one has nothing to do.
    let outcome = site.ingest();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "0 jobs added\n"), "{outcome:?}");
    assert!(spool.join("notes.txt").exists() && spool.join(".0-1-0-h.gyan-record").exists());
}

#[test]
fn a_user_with_very_many_records_comes_last_and_is_bounded() {
    let site = Site::new();
    if chown(site.path("spool"), Some(0), None).is_err() {
        println!("not run: only root can give files to other users");
        return;
    }
    for number in 0..300 {
        let name = format!("0-{number}-0-x.gyan-record");
        site.put(&name, b"flood");
        chown(site.path("spool").join(name), Some(4711), None).unwrap();
    }
    for job in 0..5 {
        site.put(&name(job), &record(job, 20));
    }
    let ingest = ["archive", "ingest", "spool", "archive", "--most-of-user", "100"];
    let outcome = run(gyan().args(ingest).current_dir(&site.directory));
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.stdout, "5 jobs added, 100 refused, 200 left for the next time\n");
    assert!(outcome.stderr.contains("user 4711: 100 records refused"), "{}", outcome.stderr);
    let kept = fs::read_dir(site.path("spool/refused")).unwrap().count();
    assert_eq!(kept, 20 + 1, "20 records, and their numbers");
}

/// Another user was there before the ingester.
#[test]
fn directories_of_others_are_not_used() {
    let site = Site::with_jobs(2, 20);
    if chown(site.path("spool"), Some(0), None).is_err() {
        println!("not run: only root can give files to other users");
        return;
    }
    for name in [".ingest", "refused"] {
        fs::create_dir(site.path("spool").join(name)).unwrap();
        chown(site.path("spool").join(name), Some(4711), None).unwrap();
    }
    fs::write(site.path("spool/.ingest/batch"), b"rows that nobody had").unwrap();
    assert_eq!(site.ingest().stdout, "2 jobs added\n");
    let mode = site.path("spool/.ingest").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// A server of S3 on this machine, of moto, until it is dropped.
struct ObjectStore {
    server: Child,
    endpoint: String,
}

impl ObjectStore {
    fn start(python: &Path) -> ObjectStore {
        // Free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = command(&[python.to_str().unwrap(), "-m", "moto.server"]);
        server.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "moto does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        ObjectStore { server, endpoint: format!("http://127.0.0.1:{port}") }
    }

    /// With where it is, and who asks.
    fn known_to<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "tests")
            .env("AWS_SECRET_ACCESS_KEY", "tests")
            .env("NO_PROXY", "127.0.0.1")
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn an_archive_in_an_object_store_has_the_same_files() {
    const CREATE: &str = "import boto3; boto3.client('s3').create_bucket(Bucket='jobs')";
    const FETCH: &str = "
import boto3, pathlib
s3 = boto3.client('s3')
for page in s3.get_paginator('list_objects_v2').paginate(Bucket='jobs'):
    for found in page['Contents']:
        path = pathlib.Path(found['Key'])
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file('jobs', found['Key'], str(path))";
    let packages = ["moto[server]>=5", "boto3"];
    let Some(python) = python_with("test-s3", "moto.server, boto3", &packages) else { return };
    let store = ObjectStore::start(&python);
    let asked = |site: &Site, code: &str| {
        let mut asked = Command::new(&python);
        succeed(store.known_to(asked.args(["-c", code]).current_dir(&site.directory)));
    };
    // More batches than stay small files.
    let (site, local) = (Site::new(), Site::new());
    asked(&site, CREATE);
    let to_store = || {
        let mut ingest = gyan();
        let arguments = ["archive", "ingest", "spool", "s3://jobs/a/b"];
        run(store.known_to(ingest.args(arguments).current_dir(&site.directory)))
    };
    for job in 0..18 {
        site.put(&name(job), &record(job, 17));
        local.put(&name(job), &record(job, 17));
        let (outcome, expected) = (to_store(), local.ingest());
        assert_eq!(outcome.stdout, expected.stdout, "{outcome:?}");
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    }
    site.put(&name(3), &record(3, 17));
    assert_eq!(to_store().stdout, "0 jobs added, 1 known already\n");
    asked(&site, FETCH);
    fs::rename(site.path("a/b"), site.path("archive")).unwrap();
    assert_eq!(site.rows(), local.rows());
    // Who may not write loses nothing.
    site.put(&name(100), &record(100, 17));
    let mut ingest = gyan();
    ingest.args(["archive", "ingest", "spool", "s3://no-such-bucket/a"]);
    let outcome = run(store.known_to(ingest.current_dir(&site.directory)));
    one_line(&outcome, 2, &["no such bucket", "safe"]);
    assert_eq!(to_store().stdout, "1 job added\n");
}
