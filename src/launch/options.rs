//! Which words of a launcher's command line are its options, and where do the programs begin? The words after
//! each option are in a table for each launcher. Nothing is guessed: an option that a table lacks leaves the
//! programs unknown.

use std::ffi::{OsStr, OsString};

/// How options are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Syntax {
    /// Every option is a name, after one or two dashes alike; a value is the next word, or comes after `=`.
    Names,
    /// As in `getopt_long(3)`: letters in one word, with the value of the last one; names after two dashes, in
    /// full or abbreviated if unambiguous.
    Getopt,
}

/// The options of a launcher, separated by spaces.
#[derive(Debug)]
pub(crate) struct Options {
    syntax: Syntax,
    /// Followed by nothing, or by a value within the same word.
    alone: &'static str,
    /// Followed by one word.
    one: &'static str,
    /// Followed by two words.
    two: &'static str,
    /// Followed by `NAME=VALUE`, or by two words.
    variable: &'static str,
}

/// mpirun of Open MPI 4.1.4 (`mpirun --help all`) and 5.0 (`ompioptions` of PRRTE 3.0's `schizo_ompi.c`, the
/// long and the deprecated options in its help-prterun.txt). Options that differ between the two are left out:
/// `--display-topo`, `--dvm`, `--help`, `--output-proctable`.
pub(crate) static OPEN_MPI: Options = Options {
    syntax: Syntax::Names,
    alone: "V allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d debug debug-daemons \
            debug-daemons-file debug-devel disable-recovery display-allocation display-comm display-comm-finalize \
            display-devel-allocation display-devel-map display-diffable-map display-map do-not-launch do-not-resolve \
            enable-instant-on-support enable-recovery fwd-mpirun-port get-stack-traces index-argv-by-rank \
            leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm oversubscribe p \
            parsable parseable pernode preload-binary q quiet report-bindings report-child-jobs-separately \
            report-state-on-timeout s set-cwd-to-session-dir show-progress stop-in-app stop-in-init stop-on-exec \
            tag-output timestamp-output tv use-hwthread-cpus use-regexp v verbose version xml",
    one: "H N am amca app arch bind-to c cartofile cf cpu-list cpu-set cpus-per-proc cpus-per-rank debugger \
          default-hostfile display forward-signals hnp host hostfile initial-errhandler launch-agent machinefile map-by \
          max-restarts max-vm-size memory-alloc-kinds n np npernode npersocket ompi-server output output-directory \
          output-filename path personality ppr prefix preload-files pset rank-by rankfile report-events report-pid \
          report-uri rf runtime-options spawn-timeout stdin stream-buffering timeout tmpdir tune wd wdir with-ft x \
          xml-file xterm",
    two: "gmca gomca gpmixmca mca omca pmixmca prtemca",
    variable: "",
};

/// mpiexec of MPICH 4.0 to 5.0 (`mpiexec --help`, hydra's ui/mpich/utils.c) and of Intel MPI 2021.18 (`mpiexec --help`,
/// `mpiexec -OPTION -help`).
pub(crate) static HYDRA: Options = Options {
    syntax: Syntax::Names,
    alone: "aps dac debug disable-auto-cleanup disable-hostname-propagation disable-x enable-auto-cleanup \
            enable-hostname-propagation enable-x envall envnone gdb genvall genvnone hybrid-hosts info l mps nolocal \
            pmi-port prepend-rank prepend-timestamp print-all-exitcodes print-rank-map profile prot rr silent-abort \
            skip-launch-node v verbose version",
    one: "bind-to binding bootstrap bootstrap-exec configfile cpu-bind demux envlist errfile errfile-pattern f g gdb-args \
          genvlist gpus-per-proc grr gtool gtoolfile host hostfile hostlist hosts hosts-group iface launcher \
          launcher-exec localhost machine machinefile machinelist machines map-by membind memory-alloc-kinds n \
          nameserver np order-nodes outfile outfile-pattern output-from perhost ppn prepend-pattern rankmap rmk s \
          topolib tune usize wdir",
    two: "",
    variable: "env genv",
};

/// srun(1) of Slurm 22.05. `--multi-prog` is left out, since the program is then in a file.
pub(crate) static SLURM: Options = Options {
    syntax: Syntax::Getopt,
    alone: "E H I K O Q V X Z bcast compress contiguous disable-status exact exclusive h help hold immediate k \
            kill-on-bad-exit l label nice no-allocate no-kill overcommit overlap oversubscribe preserve-env propagate pty \
            quiet quit-on-interrupt reboot resv-ports s send-libs spread-job test-only u unbuffered usage use-min-nodes v \
            verbose version x11",
    one: "A B C D F G J L M N S T W accel-bind account acctg-freq b bb bbf bcast-exclude begin c chdir \
          cluster-constraint clusters comment constraint container core-spec cores-per-socket cpu-bind cpu-freq \
          cpus-per-gpu cpus-per-task d deadline delay-boot dependency distribution e epilog error exclude export \
          extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags \
          het-group hint i input job-name jobid licenses m mail-type mail-user mcs-label mem mem-bind mem-per-cpu \
          mem-per-gpu mincpus mpi msg-timeout n network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu \
          ntasks-per-node ntasks-per-socket o open-mode output p partition power prefer priority profile prolog q qos r \
          relative reservation signal slurmd-debug sockets-per-node switches t task-epilog task-prolog thread-spec \
          threads threads-per-core time time-min tmp uid w wait wckey x",
    two: "",
    variable: "",
};

/// `flux run`, `submit` and `alloc` of Flux (flux-core's bindings/python/flux/cli/base.py, one version of it). `--dump` of `flux alloc`
/// may or may not take the next word, and is left out.
pub(crate) static FLUX: Options = Options {
    syntax: Syntax::Getopt,
    alone: "debug-emulate dry-run exclusive jps l label-io progress quiet u unbuffered v verbose wait watch x",
    one: "N add-file bcc begin-time broker-opts c cc conf cores cores-per-slot cores-per-task cwd dependency env \
          env-file env-remove error flags g gpus-per-node gpus-per-slot gpus-per-task input job-name log log-stderr n \
          nodes nslots ntasks o output q queue requires rlimit setattr setopt signal t taskmap tasks-per-core \
          tasks-per-node time-limit urgency wait-event",
    two: "",
    variable: "",
};

/// aprun of Cray's ALPS, from the synopsis in its manual; PALS has one for scripts written for ALPS.
pub(crate) static APRUN: Options = Options {
    syntax: Syntax::Names,
    alone: "B C T b batch-args bypass-app-transfer q reconnect ss",
    one: "D F L N R S a cc cp d debug e environment-override j m memory-per-pe n p r sl sn t",
    two: "",
    variable: "",
};

/// mpiexec of Cray's PALS: only options seen in use, because its manual was not available. With other options,
/// rank 0 names the run.
pub(crate) static PALS: Options =
    Options { syntax: Syntax::Names, alone: "", one: "cpu-bind env n ppn", two: "", variable: "" };

/// jsrun of IBM's Job Step Manager: options used in guides and job scripts of sites, because its manual was not
/// available.
pub(crate) static JSRUN: Options = Options {
    syntax: Syntax::Getopt,
    alone: "",
    one: "X a b bind c cpu_per_rs d exit_on_error g gpu_per_rs l latency_priority launch_distribution n np nrs p r \
          rs_per_host smpiargs stdio_mode stdio_stderr stdio_stdout tasks_per_rs",
    two: "",
    variable: "",
};

impl Options {
    /// The programs that `words` (without the launcher) start, separated by `:`, each with its arguments. None
    /// when an unknown option comes before one of them.
    pub(crate) fn programs<'a>(&self, words: &'a [OsString]) -> Option<Vec<&'a [OsString]>> {
        words.split(|word| word == ":").map(|words| self.program(words)).collect()
    }

    fn program<'a>(&self, words: &'a [OsString]) -> Option<&'a [OsString]> {
        let mut left = words;
        loop {
            let (word, rest) = left.split_first()?;
            if word == "--" {
                return Some(rest).filter(|rest| !rest.is_empty());
            }
            if !word.as_encoded_bytes().starts_with(b"-") || word == "-" {
                return Some(left);
            }
            left = rest.get(self.values_after(word.to_str()?, rest.first())?..)?;
        }
    }

    /// How many of the words after `word` are its values.
    fn values_after(&self, word: &str, next: Option<&OsString>) -> Option<usize> {
        let dashes = word.len() - word.trim_start_matches('-').len();
        let (name, value) = match word[dashes..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&word[dashes..], None),
        };
        if self.syntax == Syntax::Getopt && dashes == 1 {
            return self.after_letters(&word[dashes..]);
        }
        if self.has(self.variable, name) {
            let setting = value.map_or_else(|| next.cloned(), |value| Some(value.into()))?;
            let words = if setting.as_encoded_bytes().contains(&b'=') { 1 } else { 2 };
            return Some(words - usize::from(value.is_some()));
        }
        let words = [(self.alone, 0), (self.one, 1), (self.two, 2)];
        let (_, words) = words.iter().find(|(names, _)| self.has(names, name))?;
        match value {
            None => Some(*words),
            // One of the two words would remain.
            Some(_) => (*words < 2).then_some(0),
        }
    }

    /// Letters in one word: the first that takes a value gets the rest of the word, or the next one.
    fn after_letters(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            let end = at + letter.len_utf8();
            let is_in = |names: &str| listed(names, &letters[at..end]);
            if is_in(self.one) {
                return Some(usize::from(end == letters.len()));
            }
            if !is_in(self.alone) {
                // The value of a letter that may have one in the same word.
                let is_value = at > 0 && letters[at..].bytes().all(|byte| byte.is_ascii_digit());
                return is_value.then_some(0);
            }
        }
        Some(0)
    }

    /// Whether `name` is one of `names`, in full or, with `getopt_long(3)`, as an unambiguous prefix.
    fn has(&self, names: &str, name: &str) -> bool {
        if self.syntax == Syntax::Names {
            return listed(names, name);
        }
        let every =
            [self.alone, self.one, self.two].map(str::split_whitespace).into_iter().flatten();
        let beginnings = every.filter(|known| known.len() > 1 && known.starts_with(name)).count();
        let long = |known: &&str| known.len() > 1;
        let mut names = names.split_whitespace().filter(long);
        names.clone().any(|known| known == name)
            || (beginnings == 1 && !name.is_empty() && names.any(|known| known.starts_with(name)))
    }

    /// How many words follow an option of this name, if it exists.
    #[cfg(test)]
    pub(crate) fn arity(&self, name: &str) -> Option<usize> {
        let words = [(self.alone, 0), (self.one, 1), (self.two, 2), (self.variable, 2)];
        words.iter().find(|(names, _)| listed(names, name)).map(|(_, words)| *words)
    }
}

fn listed(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// The words of `flux` after its subcommand, if that starts a program.
pub(crate) fn after_subcommand(words: &[OsString]) -> Option<&[OsString]> {
    let words = match words.split_first() {
        Some((first, rest)) if first == "mini" => rest,
        _ => words,
    };
    let (subcommand, rest) = words.split_first()?;
    let known = ["run", "submit", "alloc"].map(OsStr::new);
    known.contains(&subcommand.as_os_str()).then_some(rest)
}
