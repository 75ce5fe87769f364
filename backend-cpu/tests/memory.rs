//! Memory that an engine with a GPU takes: an arena as large as planned, no copies of weights besides, neither at rest nor at
//! its peak; and all of it is given back.

mod placing;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::testing::{Journal, Recording};
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, Placing, Plans};

use planner::{Bytes, Method};

use self::placing::{cpu, gguf_of, options, placing};

/// Counts the memory of the whole program: this file has one test.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc`, and so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn live() -> Bytes {
    Bytes::from(LIVE.load(Ordering::Relaxed))
}

/// What is made, the memory that it holds, and the most that was held meanwhile.
fn held<T>(make: impl FnOnce() -> T) -> (T, Bytes, Bytes) {
    let before = live();
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let made = make();
    let peak = Bytes::from(PEAK.load(Ordering::Relaxed));
    (made, live().saturating_sub(before), peak.saturating_sub(before))
}

/// Runs passes of all sizes.
fn score(engine: &mut Engine) {
    let tokens: Vec<TokenId> = (0..40).map(|i| TokenId(3 + (i * 7) % 50)).collect();
    let mut session = engine.session();
    for n in [40, 20, 2, 40] {
        let chunk = Chunk { tokens: tokens[..n].to_vec(), scored: 1..n };
        session.score(&chunk, |_, _| ()).unwrap();
    }
}

/// Views, plans and lists of copies, and what a pass needs besides. A copy of any of these models' weights would exceed it.
const BOOKKEEPING: Bytes = Bytes::new(100 << 10);

/// Threads give back what is theirs a little after their pool has ended. Less than the smallest arena.
const STRAY: Bytes = Bytes::new(16 << 10);

fn load(path: &Path, backends: Backends, placing: Option<Placing>) -> Engine {
    Engine::load(path, &options(placing), backends).unwrap()
}

/// An engine with a GPU, and what the GPU was asked for.
fn with_gpu(path: &Path, vram: Bytes) -> (Engine, Arc<Mutex<Journal>>) {
    let gpu = Recording::gpu(vram);
    let journal = gpu.journal();
    let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
    (load(path, backends, Some(placing(vram, Plans::By(Method::Search)))), journal)
}

#[test]
fn a_gpu_takes_its_arena_and_no_more() {
    for family in ["llama", "smollm2", "qwen3moe", "gemma3"] {
        let path = gguf_of(family);
        // What is made once for all engines is made by the first.
        score(&mut with_gpu(&path, Bytes::mib(1)).0);
        let (mut engine, alone, loading) = held(|| load(&path, Backends::cpu_only(cpu()), None));
        let (_, _, scoring) = held(|| score(&mut engine));
        let most_alone = loading.max(alone + scoring);
        drop(engine);
        for vram in [80, 150, 1024].map(|kib| Bytes::new(kib << 10)) {
            let before = live();
            let ((mut engine, journal), resting, loading) = held(|| with_gpu(&path, vram));
            let arena = engine.plans().iter().map(|plan| plan.plan.vram.total()).max().unwrap();
            assert_eq!(journal.lock().unwrap().allocated, [arena], "{family}, {vram}");
            assert!(arena <= vram);
            // The recording device's arena is host memory, too.
            let besides = resting.saturating_sub(alone + arena);
            assert!(besides < BOOKKEEPING, "{family}, {vram}: {besides} besides {arena}");

            let (_, _, scoring) = held(|| score(&mut engine));
            let besides = loading.max(resting + scoring).saturating_sub(most_alone + arena);
            assert!(besides < BOOKKEEPING, "{family}, {vram}: at most {besides} besides {arena}");

            drop((engine, journal));
            assert!(live() < before + STRAY, "{family}, {vram}: {} after {before}", live());
        }
    }
}
