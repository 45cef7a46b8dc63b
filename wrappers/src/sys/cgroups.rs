//! Which control groups (cgroups(7)) is a process in, and what do they say?

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::kernel_files::text;

/// A control group that a process is in, or one that holds that.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    /// Of version 1; none in version 2, where a group has all of them.
    controllers: Option<String>,
    pub(crate) path: PathBuf,
    place: PathBuf,
}

impl ControlGroup {
    /// Those of a process by its name in `/proc`: of each hierarchy the innermost first. `root`: where the file system begins.
    pub(crate) fn of_process(root: &Path, process: &str) -> Vec<ControlGroup> {
        let groups = text(root.join("proc").join(process).join("cgroup"));
        let groups = groups.unwrap_or_default();
        let mount = root.join("sys/fs/cgroup");
        let mut found = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            // If version 1 is also in use, version 2 has a directory next to its controllers.
            let is_v2 = controllers.is_empty();
            let hierarchy = mount.join(if is_v2 { "unified" } else { controllers });
            let hierarchy = if is_v2 && !hierarchy.is_dir() { &mount } else { &hierarchy };
            // In a container the path can be the one outside: then only the root exists.
            found.extend(Path::new(path).ancestors().map(|group| ControlGroup {
                controllers: (!is_v2).then(|| controllers.to_owned()),
                path: group.to_owned(),
                place: hierarchy.join(group.strip_prefix("/").unwrap_or(group)),
            }));
        }
        found
    }

    pub(crate) fn has(&self, controller: &str) -> bool {
        let all = self.controllers.as_ref();
        all.is_none_or(|all| all.split(',').any(|of| of == controller))
    }

    /// What is in a file of it.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        text(self.place(file))
    }

    pub(crate) fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    pub(crate) fn place(&self, file: &str) -> PathBuf {
        self.place.join(file)
    }
}

/// The file that says how many processes the system has killed for lack of memory: those of the group that a process is in, or,
/// if that does not say, all.
pub(crate) fn memory_kills_file(root: &Path, process: &str) -> PathBuf {
    let groups = ControlGroup::of_process(root, process);
    let memory = groups.iter().filter(|group| group.has("memory"));
    let mut files = memory
        .flat_map(|group| ["memory.events", "memory.oom_control"].map(|file| group.place(file)));
    let file = files.find(|file| memory_kills(file).is_some());
    file.unwrap_or_else(|| root.join("proc/vmstat"))
}

/// The number in such a file.
pub(crate) fn memory_kills(file: &Path) -> Option<u64> {
    text(file)?.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::trees::tree;

    #[test]
    fn the_kills_for_lack_of_memory_are_those_of_the_group() {
        let found = |files: &[(&str, &str)]| {
            let root = tree(files);
            let file = memory_kills_file(root.path(), "7");
            let name = file.strip_prefix(root.path()).unwrap().display().to_string();
            (name, memory_kills(&file))
        };
        let all = ("proc/vmstat", "pgfault 3\noom_kill 9\n");
        let v2 = ("proc/7/cgroup", "0::/job/step\n");
        let events = ("sys/fs/cgroup/job/step/memory.events", "oom 2\noom_kill 4\n");
        assert_eq!(
            found(&[all, v2, events]),
            ("sys/fs/cgroup/job/step/memory.events".into(), Some(4))
        );
        let v1 = ("proc/7/cgroup", "3:cpu:/job\n5:memory:/job\n0::/\n");
        let control = ("sys/fs/cgroup/memory/job/memory.oom_control", "under_oom 0\noom_kill 5\n");
        assert_eq!(
            found(&[all, v1, control]),
            ("sys/fs/cgroup/memory/job/memory.oom_control".into(), Some(5))
        );
        assert_eq!(found(&[all, v2]), ("proc/vmstat".into(), Some(9)));
        assert_eq!(found(&[]), ("proc/vmstat".into(), None));
    }
}
