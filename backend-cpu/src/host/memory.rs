//! How much memory this process may still use.

use std::path::Path;

use engine_core::backend::MemoryInfo;
use planner::Bytes;

/// Memory of the machine, or of the control group that this process is confined to; `None` where the system does not
/// tell. Memory that holds copies of files counts as free, since the system gives it up when asked.
pub(crate) fn memory() -> Option<MemoryInfo> {
    linux_memory(&|path| std::fs::read_to_string(path).ok())
}

fn linux_memory(read: &dyn Fn(&str) -> Option<String>) -> Option<MemoryInfo> {
    let meminfo = read("/proc/meminfo")?;
    let kib = |key| Some(Bytes::new(field(&meminfo, key)?.checked_mul(1024)?));
    let machine = MemoryInfo { total: kib("MemTotal:")?, free: kib("MemAvailable:")? };
    let groups = control_groups(read);
    Some(
        groups.iter().filter_map(|group| group_memory(group, read)).fold(machine, |a, b| {
            MemoryInfo { total: a.total.min(b.total), free: a.free.min(b.free) }
        }),
    )
}

/// The number after `key` at the start of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
}

/// Folders of this process's group and of those around it, whose limits hold too.
fn control_groups(read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(path) = path else { return Vec::new() };
    let whole = Path::new("/sys/fs/cgroup").join(path);
    let inside = |folder: &&Path| folder.starts_with("/sys/fs/cgroup");
    whole.ancestors().take_while(inside).map(|folder| folder.display().to_string()).collect()
}

/// What a group may use; `None` when it has no limit.
fn group_memory(folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<MemoryInfo> {
    let number = |file| read(&format!("{folder}/{file}"))?.trim().parse().ok();
    let total: u64 = number("memory.max")?;
    let used: u64 = number("memory.current")?;
    let files = read(&format!("{folder}/memory.stat")).and_then(|stat| field(&stat, "file "));
    let used = used.saturating_sub(files.unwrap_or(0));
    Some(MemoryInfo { total: Bytes::new(total), free: Bytes::new(total.saturating_sub(used)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: (&str, &str) = (
        "/proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    600 kB\n",
    );

    fn memory_of(files: &[(&str, &str)]) -> Option<[u64; 2]> {
        let read = |path: &str| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.to_string())
        };
        linux_memory(&read).map(|memory| [memory.total.get(), memory.free.get()])
    }

    #[test]
    fn the_machine_is_the_limit() {
        assert_eq!(memory_of(&[MEMINFO]), Some([1_024_000, 614_400]));
        assert_eq!(memory_of(&[]), None);
    }

    #[test]
    fn groups_around_limit_too_and_file_copies_are_free() {
        let files = [
            MEMINFO,
            ("/proc/self/cgroup", "1:cpu:/x\n0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "500000\n"),
            ("/sys/fs/cgroup/a/memory.current", "400000\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 100000\nfile 300000\nfile_mapped 5\n"),
        ];
        assert_eq!(memory_of(&files), Some([500_000, 400_000]));
    }
}
