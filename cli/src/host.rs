//! What this machine is called: for people, never for decisions.

use std::env::consts;
use std::fs;

/// Name of the processor, as far as the system tells.
pub(crate) fn cpu_name() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    model_name(&about).unwrap_or_else(|| format!("{} processor", consts::ARCH))
}

/// Name and version of the system.
pub(crate) fn system() -> String {
    match fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => format!("Linux {}", release.trim()),
        Err(_) => consts::OS.to_owned(),
    }
}

fn model_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"))?;
    let name = line.trim_start().strip_prefix(':')?;
    let words: Vec<&str> = name.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_among_the_flags() {
        let text =
            "processor\t: 0\nmodel name\t: AMD  EPYC \ncache size\t: 512 KB\nmodel name\t: x\n";
        assert_eq!(model_name(text).as_deref(), Some("AMD EPYC"));
        assert_eq!(model_name("processor: 0\n"), None);
    }
}
