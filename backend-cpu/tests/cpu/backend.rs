//! Buffers, copies, fences and errors of the backend.

use crate::harness::Bench;
use engine_core::backend::{BackendError, Fence, HostRegion, HostSlice};
use engine_core::op::{Attention, Glu, MatMul, Op, View};
use engine_core::weights::DType;
use planner::Bytes;

fn bench() -> Bench {
    Bench::new(backend_cpu::Isa::Scalar, 2)
}

#[test]
fn memory_that_is_not_there_is_refused_with_the_figures() {
    let mut bench = bench();
    let asked = Bytes::new(1 << 60);
    match bench.backend.alloc(asked) {
        Err(BackendError::OutOfMemory { device, asked: told, free, total }) => {
            assert_eq!((device.as_str(), told), ("cpu", asked));
            assert!(free <= total && total < asked);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_counts_once_it_is_asked_for() {
    // The system itself counts it only once it is written.
    let mut bench = bench();
    let Ok(before) = bench.backend.memory() else { return };
    let size = Bytes::new(before.free.get() / 4 * 3);
    let buffer = bench.backend.alloc(size).unwrap();
    assert!(bench.backend.memory().unwrap().free < size);
    assert!(matches!(bench.backend.alloc(size), Err(BackendError::OutOfMemory { .. })));
    bench.backend.free(buffer);
    let buffer = bench.backend.alloc(size).unwrap();
    bench.backend.free(buffer);
}

#[test]
fn fences_come_in_order_and_are_reached_at_once() {
    let mut bench = bench();
    let first = bench.backend.submit(&[], &[]).unwrap();
    let second = bench.backend.submit(&[], &[first]).unwrap();
    assert!(first < second);
    bench.backend.wait(second).unwrap();
}

#[test]
#[should_panic(expected = "is not of this backend")]
fn fences_of_others_are_refused() {
    let _ = bench().backend.wait(Fence(7));
}

#[test]
fn uploaded_bytes_arrive_at_their_place() {
    let mut bench = bench();
    let view = bench.f32s(&[1.0; 8], 4);
    let region = HostRegion::new([2.0f32.to_le_bytes(), 3.0f32.to_le_bytes()].concat());
    let slice = HostSlice::new(region.clone(), 4..8).unwrap();
    let place = View { offset: Bytes::new(20), shape: [1, 1], ..view };
    let fence = bench.backend.upload(slice, &place, &[]).unwrap();
    bench.backend.wait(fence).unwrap();
    assert_eq!(bench.read::<f32>(&view), [1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 1.0, 1.0]);
    bench.backend.page_lock(&region).unwrap();
}

#[test]
fn imported_weights_multiply_wherever_they_lie() {
    // One byte into the region, as in a file that aligns nothing.
    let mut bytes = vec![0u8];
    bytes.extend([1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()));
    let slice = HostSlice::new(HostRegion::new(bytes), 1..17).unwrap();
    let mut bench = bench();
    let buffer = bench.backend.import(slice).unwrap();
    let w = View { buffer, offset: Bytes::ZERO, shape: [2, 2], dtype: DType::F32 };
    let x = bench.f32s(&[1.0, 10.0], 2);
    let y = bench.zeros(1, 2);
    bench.run(&[Op::MatMul(MatMul { x, w, y })]);
    assert_eq!(bench.read::<f32>(&y), [21.0, 43.0]);
}

#[test]
#[should_panic(expected = "are not inside a buffer of 32")]
fn views_beyond_their_buffer_are_refused() {
    let mut bench = bench();
    let x = bench.zeros(1, 8);
    let beyond = View { offset: Bytes::new(16), ..x };
    let glu = Glu { gate: beyond, up: x, y: x, activation: engine_core::op::Activation::Silu };
    let _ = bench.backend.submit(&[Op::Glu(glu)], &[]);
}

#[test]
#[should_panic(expected = "36 bytes do not fit 32")]
fn writes_beyond_a_view_are_refused() {
    let mut bench = bench();
    let x = bench.zeros(1, 8);
    let _ = bench.backend.write(&x, &[0; 36]);
}

#[test]
fn formats_without_arithmetic_are_not_supported() {
    let mut bench = bench();
    let x = bench.zeros(1, 256);
    let matmul = |dtype| Op::MatMul(MatMul { x, w: View { dtype, ..x }, y: x });
    let supported: Vec<DType> = DType::ALL
        .iter()
        .copied()
        .filter(|&dtype| bench.backend.supports(&matmul(dtype)))
        .collect();
    use DType::*;
    let expected = [
        F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16,
        MXFP4,
    ];
    assert_eq!(supported, expected);
    let quantised_cells = Attention {
        q: x,
        k: View { dtype: Q8_0, ..x },
        v: View { dtype: Q8_0, ..x },
        cells: x,
        spans: x,
        out: x,
        n_head: 1,
        n_kv_head: 1,
        scale: 1.0,
        soft_cap: None,
        window: None,
    };
    assert!(!bench.backend.supports(&Op::Attention(quantised_cells)));
}
