//! A single-node Slurm for as long as a test needs it: whatever already runs on the machine is not touched.
//! Debian's packages slurm-wlm and munge; no systemd and no configuration of the system.
//!
//! It listens on one address, that of this machine's name, because Slurm's programs cannot be bound to any
//! other: loopback on a machine, in a container often the address of the container. If the name means
//! 127.0.1.1, as in Debian's installer, only srun listens on all addresses, because it is called back at
//! 127.0.0.1. Only clients with the key of this munged are admitted.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wait_timeout::ChildExt;

use crate::common::{comes_true, command, root, run};

/// No daemon takes longer to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The three daemons. Dropping it ends them, even if the test failed; if the test is killed, the kernel ends
/// them.
pub(crate) struct Slurm {
    /// In the order of their start.
    daemons: Vec<Child>,
    /// That of the commands.
    configuration: PathBuf,
    directory: TempDir,
}

impl Slurm {
    /// Returns when a job can start.
    pub(crate) fn start() -> Slurm {
        Slurm::start_with("")
    }

    /// The same with more lines in its configuration.
    pub(crate) fn start_with(settings: &str) -> Slurm {
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        // Munge's clients must reach its socket.
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["state", "spool"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let file = |name: &str| path.join(name);
        let (of_daemons, configuration) = (file("daemons.conf"), file("slurm.conf"));
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let address = address_of(host.trim());
        let configured = configured(path, host.trim(), address) + settings;
        let one_address = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n";
        fs::write(&of_daemons, format!("{configured}{one_address}")).unwrap();
        let called_back = !address.is_loopback() || address == Ipv4Addr::LOCALHOST;
        let of_commands = if called_back { one_address } else { "" };
        fs::write(&configuration, format!("{configured}{of_commands}")).unwrap();
        let of_daemons = of_daemons.display().to_string();
        let mut slurm = Slurm { daemons: Vec::new(), configuration, directory };
        slurm.start_munged();
        slurm.daemon(&["slurmctld", "-D", "-f", &of_daemons]);
        slurm.daemon(&["slurmd", "-D", "-f", &of_daemons]);
        slurm.wait_for("an idle node", |slurm| {
            run(&mut slurm.command(&["sinfo", "-h", "-o", "%T"])).stdout.trim() == "idle"
        });
        slurm
    }

    /// Its own munged, with its own key, as this user: the system's may or may not be running.
    fn start_munged(&mut self) {
        let file = |name: &str| self.directory.path().join(name);
        let mut key = vec![0; 1024];
        std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        fs::write(file("munge.key"), key).unwrap();
        fs::set_permissions(file("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let options = [
            ("--key-file", "munge.key"),
            ("--socket", "munge.socket"),
            ("--pid-file", "munged.pid"),
            ("--seed-file", "munged.seed"),
            ("--log-file", "munged.log"),
        ]
        .map(|(option, name)| format!("{option}={}", file(name).display()));
        let words: Vec<&str> =
            ["munged", "-F"].into_iter().chain(options.iter().map(String::as_str)).collect();
        self.daemon(&words);
        let socket = self.directory.path().join("munge.socket").display().to_string();
        self.wait_for("munged", |_| run(&mut command(&["munge", "-n", "-S", &socket])).code == 0);
    }

    fn daemon(&mut self, words: &[&str]) {
        let path = format!("/usr/sbin/{}", words[0]);
        assert!(Path::new(&path).exists(), "{path}: not there; scripts/packages slurm-wlm munge");
        let log = File::create(self.directory.path().join(format!("{}.out", words[0]))).unwrap();
        // The kernel ends it with the test's thread, since Drop does not run if that is killed.
        let mut daemon = Command::new("setpriv");
        daemon.args(["--pdeathsig", "TERM", &path]).args(&words[1..]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["GYAN", "SLURM", "LD_PRELOAD"].iter().any(|prefix| name.starts_with(prefix)) {
                daemon.env_remove(name);
            }
        }
        daemon.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(daemon.spawn().unwrap());
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&Slurm) -> bool) {
        assert!(comes_true(|| is_there(self)), "{what} did not come:\n{}", self.logs());
    }

    fn logs(&self) -> String {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let outputs = paths.filter(|path| path.extension().is_some_and(|kind| kind == "out"));
        outputs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }

    /// Waits for a batch job; returns its final state.
    pub(crate) fn end_of_job(&self, job: &str) -> String {
        let state = || {
            let words = ["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"];
            run(&mut self.command(&words)).stdout.trim().to_owned()
        };
        let on_its_way = ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"];
        self.wait_for("the end of a job", |_| !on_its_way.contains(&state().as_str()));
        state()
    }

    /// A command that knows this Slurm.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.env("SLURM_CONF", &self.configuration);
        command
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let user = user();
        if self.daemons.len() == 3 {
            run(&mut self.command(&["scancel", "--user", &user]));
            let begun = Instant::now();
            // What is left of a job after that goes with slurmd.
            while begun.elapsed() < PATIENCE / 10
                && !run(&mut self.command(&["squeue", "-h"])).stdout.is_empty()
            {
                thread::sleep(Duration::from_millis(50));
            }
        }
        // slurmd, slurmctld, munged: each needs the one before it.
        for mut daemon in self.daemons.drain(..).rev() {
            let process = rustix::process::Pid::from_child(&daemon);
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
            if !matches!(daemon.wait_timeout(PATIENCE / 4), Ok(Some(_))) {
                let _ = daemon.kill();
                let _ = daemon.wait();
            }
        }
    }
}

fn user() -> String {
    run(&mut command(&["id", "-un"])).stdout.trim().to_owned()
}

/// What `host` means on this machine.
fn address_of(host: &str) -> IpAddr {
    let mut addresses = (host, 0).to_socket_addrs().into_iter().flatten();
    let address = addresses.find(std::net::SocketAddr::is_ipv4).map(|address| address.ip());
    address.unwrap_or_else(|| panic!("{host}: has no address; add it to /etc/hosts"))
}

/// Two ports without listeners, below those used for connections (`ip_local_port_range`): one of these may be
/// taken before the server listens.
fn free_ports(address: IpAddr) -> [u16; 2] {
    let is_free = |port| TcpListener::bind((address, port)).is_ok();
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut free = (first..32_000).filter(|port| is_free(*port));
    [free.next().unwrap(), free.next().unwrap()]
}

/// `tests/slurm.conf`, filled in for one node.
fn configured(directory: &Path, host: &str, address: IpAddr) -> String {
    let [controller_port, node_port] = free_ports(address);
    let template = fs::read_to_string(root().join("tests/slurm.conf")).unwrap();
    let places = [
        ("directory", directory.display().to_string()),
        ("user", user()),
        ("controller", host.to_owned()),
        ("controller_address", address.to_string()),
        ("controller_port", controller_port.to_string()),
        ("node_port", node_port.to_string()),
        ("nodes", host.to_owned()),
        ("addresses", address.to_string()),
    ];
    places.into_iter().fold(template, |text, (place, value)| {
        assert!(text.contains(&format!("{{{place}}}")), "tests/slurm.conf has no {place}");
        text.replace(&format!("{{{place}}}"), &value)
    })
}
