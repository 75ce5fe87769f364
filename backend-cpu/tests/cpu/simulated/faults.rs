//! Mistakes of the caller and of the device, and that they are seen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use backend_cpu::{Faults, SimOptions};
use engine_core::backend::{BackendError, BufferId, Fence, HostSlice, Res};
use engine_core::op::View;
use planner::Bytes;

use super::{add, bench, bytes_of, region, slot_and_sum};
use crate::gate::Gate;
use crate::harness::{Bench, fast};

/// The message of the panic that `run` ends with.
fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("a panic");
    *panic.downcast::<String>().expect("a message")
}

#[test]
fn a_missing_fence_is_found_and_ends_the_device() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let (gate, src) = Gate::before(bytes_of(&[2.0; 8]));
    let copied = bench.backend.upload(src.clone(), &slot, &[]).unwrap();
    gate.await_reader();
    let added = bench.backend.submit(&add(slot, sum), &[]).unwrap();
    let message = panic_of(|| bench.backend.wait(added).unwrap());
    assert!(message.contains("broken schedule: bytes 0..32 are in use"), "{message}");
    gate.open();
    let failed = |result: Res<()>| match result {
        Err(BackendError::Failed { device, call }) => {
            assert_eq!(device, "sim");
            call
        }
        other => panic!("{other:?}"),
    };
    let gpu = &mut bench.backend;
    assert_eq!(failed(gpu.wait(copied)), "wait");
    assert_eq!(failed(gpu.read(&sum, &mut [0; 4], &[])), "read");
    assert_eq!(failed(gpu.submit(&[], &[]).map(drop)), "submit");
    assert_eq!(failed(gpu.upload(src, &slot, &[]).map(drop)), "upload");
    assert_eq!(failed(gpu.write(&sum, &[0; 4])), "write");
}

#[test]
fn a_read_of_what_is_being_written_is_found() {
    let mut bench = bench();
    let [slot, _] = slot_and_sum(&mut bench);
    let (gate, src) = Gate::before(bytes_of(&[2.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    gate.await_reader();
    let message = panic_of(|| bench.backend.read(&slot, &mut [0; 4], &[]).unwrap());
    assert!(message.contains("broken schedule"), "{message}");
    gate.open();
    bench.backend.wait(copied).unwrap();
}

#[test]
fn a_panic_of_a_thread_reaches_the_caller_whatever_it_waits_for() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let beyond = View { offset: Bytes::new(48), ..slot };
    let added = bench.backend.submit(&add(beyond, sum), &[]).unwrap();
    let src = HostSlice::whole(region(&[2.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[added]).unwrap();
    let message = panic_of(|| bench.backend.wait(copied).unwrap());
    assert!(message.contains("bytes 48..80 are not inside a buffer of 64"), "{message}");
}

#[test]
#[should_panic(expected = "bytes 48..80 are not inside a buffer of 64")]
fn uploads_beyond_a_buffer_are_refused_at_once() {
    let mut bench = bench();
    let [slot, _] = slot_and_sum(&mut bench);
    let beyond = View { offset: Bytes::new(48), ..slot };
    let _ = bench.backend.upload(HostSlice::whole(region(&[2.0; 8])), &beyond, &[]);
}

#[test]
#[should_panic(expected = "36 bytes do not fit 32")]
fn writes_beyond_a_view_are_refused_at_once() {
    let mut bench = bench();
    let [slot, _] = slot_and_sum(&mut bench);
    let _ = bench.backend.write(&slot, &[0; 36]);
}

#[test]
#[should_panic(expected = "BufferId(7) does not exist")]
fn unknown_buffers_are_refused_at_once() {
    let mut bench = bench();
    let [slot, _] = slot_and_sum(&mut bench);
    let _ = bench.backend.write(&View { buffer: BufferId(7), ..slot }, &[0; 4]);
}

#[test]
#[should_panic(expected = "is not of this backend")]
fn fences_of_others_are_refused() {
    let _ = bench().backend.wait(Fence(7));
}

#[test]
fn the_call_that_is_to_fail_fails_once() {
    let faults = Faults { alloc: Some(2), copy: Some(1), submit: Some(3) };
    let mut bench = Bench::simulated(SimOptions { faults, ..fast() });
    let [slot, sum] = slot_and_sum(&mut bench);
    let refused = bench.backend.alloc(Bytes::new(64));
    assert!(matches!(refused, Err(BackendError::OutOfMemory { .. })), "{refused:?}");
    bench.backend.alloc(Bytes::new(64)).unwrap();
    let region = region(&[1.0; 8]);
    let src = HostSlice::whole(Arc::clone(&region));
    let refused = bench.backend.upload(src.clone(), &slot, &[]);
    assert!(matches!(refused, Err(BackendError::Failed { call: "upload", .. })), "{refused:?}");
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    bench.backend.submit(&add(slot, sum), &[copied]).unwrap();
    bench.backend.submit(&add(slot, sum), &[]).unwrap();
    let refused = bench.backend.submit(&add(slot, sum), &[]);
    assert!(matches!(refused, Err(BackendError::Failed { call: "submit", .. })), "{refused:?}");
    assert_eq!(bench.read::<f32>(&sum), [2.0; 8], "nothing of what failed was done");
    assert_eq!(Arc::strong_count(&region), 1);
}
