//! How many threads are worth starting.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// Number of fast physical cores that this process may use, within its share of processor time. Where the system does
/// not describe its cores, the number of threads that it offers.
pub(crate) fn fast_cores() -> NonZeroUsize {
    let offered = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let read = |path: &str| std::fs::read_to_string(path).ok();
    physical_cores(&read).map_or(offered, |cores| cores.min(offered))
}

/// Fast physical cores among those that Linux lets this process use, as far as files read by `read` tell. Threads of one
/// core count once, and slow cores only where there are no others.
fn physical_cores(read: &dyn Fn(&str) -> Option<String>) -> Option<NonZeroUsize> {
    let status = read("/proc/self/status")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let allowed = cpu_list(allowed)?;
    let fast = fast_among(&allowed, read);
    // The threads of a core have the same list of siblings.
    let siblings = |cpu: usize| {
        read(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    };
    let cores: Option<BTreeSet<String>> = fast.into_iter().map(siblings).collect();
    NonZeroUsize::new(cores?.len())
}

/// The fast ones of some CPUs: the performance cores of a hybrid x86 or the cores of most capacity of an Arm; else all.
fn fast_among(cpus: &BTreeSet<usize>, read: &dyn Fn(&str) -> Option<String>) -> BTreeSet<usize> {
    let performance = read("/sys/devices/cpu_core/cpus").and_then(|list| cpu_list(&list));
    if let Some(performance) = performance
        && !performance.is_disjoint(cpus)
    {
        return cpus & &performance;
    }
    let capacity = |cpu: &usize| -> Option<u32> {
        read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"))?.trim().parse().ok()
    };
    let most = cpus.iter().filter_map(capacity).max();
    // Cores of one kind differ a little where some may run at a higher clock.
    let is_fast = |cpu: &usize| capacity(cpu).zip(most).is_none_or(|(it, most)| 4 * it >= 3 * most);
    cpus.iter().copied().filter(is_fast).collect()
}

/// Reads a list such as `0-3,8,10-11`.
fn cpu_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of made-up files.
    fn cores(files: &[(&str, &str)], siblings: &[&str]) -> Option<usize> {
        let read = |path: &str| {
            let file = files.iter().find(|(name, _)| *name == path);
            let topology = siblings.iter().enumerate().find(|(cpu, _)| {
                path == format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            });
            file.map(|(_, text)| text.to_string()).or(topology.map(|(_, list)| list.to_string()))
        };
        physical_cores(&read).map(NonZeroUsize::get)
    }

    fn allowed(list: &str) -> (&'static str, String) {
        ("/proc/self/status", format!("Name:\tbaton\nCpus_allowed_list:\t{list}\nThreads:\t1\n"))
    }

    #[test]
    fn threads_of_a_core_count_once() {
        let (path, status) = allowed("0-3");
        assert_eq!(cores(&[(path, &status)], &["0,2", "1,3", "0,2", "1,3"]), Some(2));
    }

    #[test]
    fn affinity_is_respected() {
        let (path, status) = allowed("1,3-4");
        let siblings = ["0", "1", "2", "3", "4", "5"];
        assert_eq!(cores(&[(path, &status)], &siblings), Some(3));
    }

    #[test]
    fn efficiency_cores_do_not_count() {
        // A hybrid without hyper-threading: 8 fast cores and 12 slow ones.
        let (path, status) = allowed("0-19");
        let siblings: Vec<String> = (0..20).map(|cpu| cpu.to_string()).collect();
        let siblings: Vec<&str> = siblings.iter().map(String::as_str).collect();
        let hybrid = ("/sys/devices/cpu_core/cpus", "0-7\n");
        assert_eq!(cores(&[(path, &status), hybrid], &siblings), Some(8));
        let (path, only_slow) = allowed("9-11");
        assert_eq!(cores(&[(path, &only_slow), hybrid], &siblings), Some(3));
    }

    #[test]
    fn little_cores_do_not_count() {
        let (path, status) = allowed("0-3");
        let capacity = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let paths = [0, 1, 2, 3].map(capacity);
        let files = [
            (path, status.as_str()),
            (&paths[0], "446"),
            (&paths[1], "446"),
            (&paths[2], "1000"),
            (&paths[3], "1024"),
        ];
        assert_eq!(cores(&files, &["0", "1", "2", "3"]), Some(2));
    }

    #[test]
    fn a_silent_system_gives_no_number() {
        assert_eq!(cores(&[], &[]), None);
        let (path, status) = allowed("0-1");
        assert_eq!(cores(&[(path, &status)], &[]), None);
    }
}
