//! `baton profile`: what it writes, and that nothing else stays behind. No figure is judged.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use planner::{Format, MachineProfile};

use crate::{Outcome, baton};

/// As little as can be asked for: the points that must be there.
fn profile(output: &Path, flags: &[&str]) -> Outcome {
    let quick = ["profile", "--seconds", "1", "--formats", "Q4_1", "--threads", "1", "--output"];
    let words = quick.iter().map(Path::new).chain([output]);
    baton(words.chain(flags.iter().map(Path::new)))
}

#[test]
fn the_file_is_a_profile_and_stands_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("new/machine.toml");
    let table = profile(&path, &[]).success();
    assert!(table.contains("Q4_1") && table.contains("GB/s"), "{table}");
    assert_eq!(table.lines().last().map(Path::new), Some(&*path));
    let text = fs::read_to_string(&path).expect("the file");
    let machine = MachineProfile::from_toml(&text).expect("a valid profile");
    assert_eq!((machine.cpu.threads, &machine.gpu), (1, &None));
    assert!(machine.cpu.kernels.products.iter().all(|times| times.format == Format::Q4_1));
    assert!(machine.provenance.contains("1 thread"), "{}", machine.provenance);
    assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("readable").count(), 1);
}

#[test]
fn json_is_one_object_with_all_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("machine.toml");
    let json = profile(&path, &["--json"]).success();
    assert_eq!(json.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["path"].as_str().map(Path::new), Some(&*path));
    let products = json["profile"]["cpu"]["kernels"]["products"].as_array().expect("a list");
    assert!(products.iter().all(|times| times["format"] == "Q4_1"));
    assert!(json["noisy"].is_array());
}

#[test]
fn a_simulated_gpu_is_measured_and_called_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("machine.toml");
    // Measuring takes more memory than that.
    let sim = ["--device", "cpu,sim", "--sim", "vram=64MiB,pcie=8GB/s"];
    let outcome = profile(&path, &sim);
    let simulated = "the GPU is simulated: 512.0 MiB at 8.0 GB/s, 1 thread of the CPU";
    assert!(outcome.stderr.contains(simulated), "{}", outcome.stderr);
    let table = outcome.success();
    assert!(table.contains("sim, 512.0 MiB of memory, 0 B of it taken"), "{table}");
    assert!(table.contains("µs a hand-off"), "{table}");
    let text = fs::read_to_string(&path).expect("the file");
    let machine = MachineProfile::from_toml(&text).expect("a valid profile");
    assert!(machine.provenance.contains(simulated), "{}", machine.provenance);
    assert_eq!(machine.gpu.expect("a GPU").name, "sim");
}

#[test]
fn the_usual_place_is_the_configuration_folder() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["profile", "--seconds", "1", "--formats", "q8_0", "--threads", "1"])
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .output()
        .expect("baton ends");
    assert!(output.status.success());
    if cfg!(target_os = "linux") {
        assert!(home.path().join("baton/machine.toml").is_file());
    }
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("machine.toml");
    let refused = |flags: &[&str]| profile(&path, flags).bad_input();
    let message = refused(&["--isa", "avx9"]);
    assert!(message.contains("known: scalar"), "{message}");
    let message = refused(&["--device", "cuda:0"]);
    assert!(message.contains("this build has no CUDA backend, so there is no cuda:0"), "{message}");
    let message = refused(&["--sim", "threads=2"]);
    assert!(message.contains("add --device sim"), "{message}");
    let flags = ["profile", "--device", "sim", "--sim", "vram=64MB"];
    let outcome = baton(flags);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("vram=64MB: expected a size"), "{}", outcome.stderr);
    let message = baton(["profile", "--formats", "Q4_1,Q9"]).bad_input();
    assert!(message.contains("no format of weights has the name Q9; known: F32"), "{message}");
    let message = profile(Path::new("/dev/null/machine.toml"), &[]).bad_input();
    assert!(message.contains("cannot write /dev/null/machine.toml"), "{message}");
    let message = profile(folder.path(), &[]).bad_input();
    assert!(message.contains("is a directory"), "{message}");
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().join("new");
    let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["profile", "--seconds", "3600", "--output"])
        .arg(folder.join("machine.toml"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("baton starts");
    while !folder.exists() {
        assert_eq!(baton.try_wait().expect("a child"), None, "it goes on until stopped");
        thread::sleep(Duration::from_millis(5));
    }
    let status = Command::new("kill").args(["-INT", &baton.id().to_string()]).status();
    assert!(status.expect("kill starts").success());
    let output = baton.wait_with_output().expect("baton ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("baton: interrupted\n"));
    assert_eq!(fs::read_dir(folder).expect("readable").count(), 0);
}
