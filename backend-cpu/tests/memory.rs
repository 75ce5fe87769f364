//! Memory that an engine with a GPU takes: an arena as large as planned, and no copies of weights besides.

mod placing;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use engine_core::Engine;
use engine_core::backend::Backends;
use engine_core::testing::Recording;
use planner::{Bytes, Method};

use self::placing::{cpu, gguf_of, options, placing};

/// Counts the memory of the whole program: this file has one test.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
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

/// What is made, and the memory that it holds.
fn held<T>(make: impl FnOnce() -> T) -> (T, Bytes) {
    let before = LIVE.load(Ordering::Relaxed);
    let made = make();
    (made, Bytes::from(LIVE.load(Ordering::Relaxed) - before))
}

/// Views, plans and lists of copies. Less than the weights of any of these models.
const BOOKKEEPING: Bytes = Bytes::new(80 << 10);

#[test]
fn a_gpu_takes_its_arena_and_no_more() {
    for family in ["llama", "smollm2", "qwen3moe", "gemma3"] {
        let path = gguf_of(family);
        let load = |backends, placing| Engine::load(&path, &options(placing), backends).unwrap();
        // What is made once for all engines is made by the first.
        let _first = load(Backends::cpu_only(cpu()), None);
        let (_engine, alone) = held(|| load(Backends::cpu_only(cpu()), None));
        for vram in [80 << 10, 150 << 10, 1 << 20] {
            let gpu = Recording::gpu(Bytes::new(vram));
            let journal = gpu.journal();
            let placing = placing(Bytes::new(vram), Method::Search);
            let backends = Backends { cpu: Box::new(cpu()), gpu: Some(Box::new(gpu)) };
            let (engine, with_gpu) = held(|| load(backends, Some(placing)));

            let arena = engine.plans().iter().map(|plan| plan.plan.vram.total()).max().unwrap();
            assert_eq!(journal.lock().unwrap().allocated, [arena], "{family}, {vram}");
            assert!(arena <= Bytes::new(vram));
            // The recording device's arena is host memory, too.
            let besides = with_gpu.saturating_sub(alone + arena);
            assert!(besides < BOOKKEEPING, "{family}, {vram}: {besides} besides {arena}");
        }
    }
}
