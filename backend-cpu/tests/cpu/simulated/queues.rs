//! Order, asynchrony, a cap and a rate.

use std::sync::Arc;
use std::time::Instant;

use backend_cpu::{Isa, Pace, SimOptions, SimulatedGpu};
use engine_core::backend::{
    Backend, BackendError, Fence, FenceSpan, HostRegion, HostSlice, MemoryInfo, Res,
};
use engine_core::op::{AddBias, Op, View};
use engine_core::weights::DType;
use planner::{Bytes, BytesPerSec, FlopsPerSec};

use super::{add, bench, bytes_of, region, slot_and_sum};
use crate::gate::Gate;
use crate::harness::{Bench, fast};

#[test]
fn memory_ends_at_the_cap() {
    let vram = Bytes::mib(1);
    let mut gpu = SimulatedGpu::new(SimOptions { vram, ..fast() }).unwrap();
    assert_eq!(gpu.name(), "sim");
    let [half, more] = [Bytes::new(512 << 10), Bytes::new((512 << 10) + 1)];
    let buffer = gpu.alloc(half).unwrap();
    assert_eq!(gpu.memory().unwrap(), MemoryInfo { total: vram, free: half });
    match gpu.alloc(more) {
        Err(BackendError::OutOfMemory { device, asked, free, total }) => {
            assert_eq!((device.as_str(), asked, free, total), ("sim", more, half, vram));
        }
        other => panic!("{other:?}"),
    }
    gpu.alloc(half).unwrap();
    assert_eq!(gpu.memory().unwrap().free, Bytes::ZERO);
    gpu.free(buffer);
    assert_eq!(gpu.alloc(half).unwrap(), buffer, "numbers are used again");
}

#[test]
fn host_memory_is_not_used_in_place() {
    let mut gpu = SimulatedGpu::new(fast()).unwrap();
    let region = region(&[1.0]);
    gpu.page_lock(&region).unwrap();
    let imported = gpu.import(HostSlice::whole(region));
    assert!(matches!(imported, Err(BackendError::Unsupported { call: "import", .. })));
}

#[test]
fn new_buffers_are_zero_also_where_others_were() {
    let mut bench = bench();
    let used = bench.f32s(&[1.0; 8], 8);
    bench.backend.free(used.buffer);
    let buffer = bench.backend.alloc(Bytes::new(32)).unwrap();
    assert_eq!(bench.read::<f32>(&View { buffer, ..used }), [0.0; 8]);
}

#[test]
fn a_submit_waits_for_the_uploads_that_it_names() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let (gate, src) = Gate::before(bytes_of(&[2.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    let added = bench.backend.submit(&add(slot, sum), &[copied]).unwrap();
    gate.await_reader();
    gate.open();
    bench.backend.wait(added).unwrap();
    assert_eq!(bench.read::<f32>(&sum), [2.0; 8]);
}

#[test]
fn ops_take_their_time_and_uploads_go_on_beside_them() {
    let pace = Pace { memory: BytesPerSec::new(1e4), compute: FlopsPerSec::new(1e9) };
    let mut bench = Bench::simulated(SimOptions { pace: Some(pace), ..fast() });
    let [slot, sum] = slot_and_sum(&mut bench);
    let other = bench.f32s(&[3.0; 8], 8);
    let start = Instant::now();
    let added = bench.backend.submit(&add(other, sum), &[]).unwrap();
    let src = HostSlice::whole(region(&[2.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    bench.backend.wait(copied).unwrap();
    bench.backend.wait(added).unwrap();
    assert_eq!(bench.read::<f32>(&sum), [3.0; 8]);
    // Eight values read from each of two arrays, and written to one.
    assert!(start.elapsed().as_secs_f64() >= 96.0 / 1e4);
}

#[test]
fn an_upload_waits_for_the_submits_that_it_names() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let mut used = None;
    // A slot that takes turns, a hundred times.
    for turn in 1..=100 {
        let src = HostSlice::whole(region(&[turn as f32; 8]));
        let copied = bench.backend.upload(src, &slot, used.as_slice()).unwrap();
        used = Some(bench.backend.submit(&add(slot, sum), &[copied]).unwrap());
    }
    bench.backend.wait(used.unwrap()).unwrap();
    assert_eq!(bench.read::<f32>(&sum), [5050.0; 8]);
}

#[test]
fn work_goes_on_beside_an_upload() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let other = bench.f32s(&[3.0; 8], 8);
    let (gate, src) = Gate::before(bytes_of(&[2.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    gate.await_reader();
    let added = bench.backend.submit(&add(other, sum), &[]).unwrap();
    bench.backend.wait(added).unwrap();
    assert_eq!(bench.read::<f32>(&sum), [3.0; 8]);
    gate.open();
    bench.backend.wait(copied).unwrap();
    assert_eq!(bench.read::<f32>(&slot), [2.0; 8]);
}

#[test]
fn uploads_are_made_in_order_and_let_go_of_their_source() {
    let mut bench = bench();
    let [slot, _] = slot_and_sum(&mut bench);
    let regions = [1.0, 2.0, 3.0].map(|value| region(&[value; 8]));
    let copied = regions.each_ref().map(|region| {
        let src = HostSlice::whole(Arc::clone(region));
        bench.backend.upload(src, &slot, &[]).unwrap()
    });
    assert!(copied.is_sorted());
    for (region, fence) in regions.iter().zip(copied) {
        bench.backend.wait(fence).unwrap();
        assert_eq!(Arc::strong_count(region), 1);
    }
    assert_eq!(bench.read::<f32>(&slot), [3.0; 8]);
}

#[test]
fn writes_come_between_what_was_submitted_before_and_after() {
    let mut bench = bench();
    let [x, sum] = slot_and_sum(&mut bench);
    for value in [1.0f32, 2.0, 4.0] {
        bench.backend.write(&x, bytemuck::cast_slice(&[value; 8])).unwrap();
        bench.backend.submit(&add(x, sum), &[]).unwrap();
    }
    bench.backend.write(&x, bytemuck::cast_slice(&[9.0f32; 2])).unwrap();
    assert_eq!(bench.read::<f32>(&sum), [7.0; 8]);
    assert_eq!(bench.read::<f32>(&x)[..3], [9.0, 9.0, 4.0]);
}

#[test]
fn a_read_waits_for_what_it_names() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let src = HostSlice::whole(region(&[1.0; 8]));
    let copied = bench.backend.upload(src, &slot, &[]).unwrap();
    let ops: Vec<Op> = (0..1000).flat_map(|_| add(slot, sum)).collect();
    let added = bench.backend.submit(&ops, &[copied]).unwrap();
    let mut first = [0.0f32; 3];
    bench.backend.read(&sum, bytemuck::cast_slice_mut(&mut first), &[copied, added]).unwrap();
    assert_eq!(first, [1000.0; 3]);
}

#[test]
fn copies_take_at_least_the_time_of_the_link() {
    let rate = 1e9;
    let mut bench = Bench::simulated(SimOptions { pcie: BytesPerSec::new(rate), ..fast() });
    let mut bytes = vec![1; 3 << 20];
    let buffer = bench.backend.alloc(Bytes::from(bytes.len())).unwrap();
    let view = View { buffer, offset: Bytes::ZERO, shape: [3 << 10, 1 << 10], dtype: DType::I8 };
    let src = HostSlice::whole(HostRegion::new(bytes.clone()));
    let mut takes_its_time = |n: usize, run: &mut dyn FnMut(&mut dyn Backend) -> Res<Fence>| {
        let start = Instant::now();
        let fence = run(bench.backend.as_mut()).unwrap();
        bench.backend.wait(fence).unwrap();
        assert!(start.elapsed().as_secs_f64() >= (n * bytes.len()) as f64 / rate);
    };
    takes_its_time(2, &mut |gpu| {
        gpu.upload(src.clone(), &view, &[])?;
        gpu.upload(src.clone(), &view, &[])
    });
    takes_its_time(1, &mut |gpu| {
        gpu.write(&view, src.bytes())?;
        gpu.submit(&[], &[])
    });
    let start = Instant::now();
    bench.backend.read(&view, &mut bytes, &[]).unwrap();
    assert!(start.elapsed().as_secs_f64() >= bytes.len() as f64 / rate);
}

#[test]
fn spans_are_of_uploads_and_submits_as_they_were() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let work = |bench: &mut Bench| {
        let src = HostSlice::whole(region(&[1.0; 8]));
        let copied = bench.backend.upload(src, &slot, &[]).unwrap();
        bench.backend.write(&sum, &[0; 32]).unwrap();
        let added = bench.backend.submit(&add(slot, sum), &[copied]).unwrap();
        bench.backend.wait(added).unwrap();
        [copied, added]
    };
    work(&mut bench);
    assert_eq!(bench.backend.take_spans(), []);
    bench.backend.note_spans(true);
    let fences = work(&mut bench);
    let spans = bench.backend.take_spans();
    assert_eq!(spans.iter().map(|span| span.fence).collect::<Vec<_>>(), fences);
    let [copy, compute]: [FenceSpan; 2] = spans.try_into().unwrap();
    assert!(copy.start <= copy.end && copy.end <= compute.start && compute.start <= compute.end);
    assert_eq!(bench.backend.take_spans(), []);
    bench.backend.note_spans(false);
    work(&mut bench);
    assert_eq!(bench.backend.take_spans(), []);
}

#[test]
fn dropped_with_work_in_flight_it_finishes_that() {
    let mut bench = bench();
    let [slot, sum] = slot_and_sum(&mut bench);
    let (gate, src) = Gate::before(bytes_of(&[2.0; 8]));
    let region = Arc::clone(src.region());
    let mut used = None;
    for _ in 0..50 {
        let copied = bench.backend.upload(src.clone(), &slot, used.as_slice()).unwrap();
        used = Some(bench.backend.submit(&add(slot, sum), &[copied]).unwrap());
    }
    drop(src);
    gate.await_reader();
    gate.open();
    drop(bench);
    assert_eq!(Arc::strong_count(&region), 1);
}

#[test]
fn it_supports_what_the_cpu_supports() {
    let (mut cpu, gpu) = (Bench::new(Isa::Scalar, 1), bench());
    let x = cpu.zeros(1, 256);
    for &dtype in DType::ALL {
        let op = Op::AddBias(AddBias { bias: View { dtype, ..x }, y: x });
        assert_eq!(gpu.backend.supports(&op), cpu.backend.supports(&op), "{dtype:?}");
    }
}
