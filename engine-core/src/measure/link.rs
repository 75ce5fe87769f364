//! The way between two devices: copies alone and beside computing, hand-offs, and starting work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use planner::{Bytes, BytesPerSec, Link, Seconds};

use super::bench::Bench;
use super::error::MeasureError;
use super::figure::Figure;
use super::light::norm;
use super::pool;
use super::stopwatch::{Stopwatch, median, rounded};
use crate::backend::{Backend, HostRegion, HostSlice, Res};
use crate::op::{MatMul, Op, View};
use crate::weights::DType;

/// Figures of a link.
pub(super) const N_FIGURES: usize = 8;

/// What is copied at a time.
const COPY: Bytes = Bytes::mib(64);
/// Copies in a row while another device computes, so that starting both does not matter.
const IN_A_ROW: usize = 8;
/// Pieces of work handed over one after the other.
const SUBMITS: usize = 64;
/// Columns of a matrix that a device multiplies beside a copy, and its rows.
const MATRIX: [u32; 2] = [1024, 4096];
/// Products handed over at a time.
const PRODUCTS: usize = 4;
/// How long a device has nothing to do before work is handed to it, as while the CPU computes a split: threads that wait
/// for work, and clocks, have gone to sleep by then.
const REST: Duration = Duration::from_millis(2);
/// Values of a residual that is handed over.
const RESIDUAL: u32 = 2048;

/// The link, and what memory gives to the CPU and to copies together.
pub(super) struct LinkTimes {
    pub(super) link: Link,
    pub(super) dram: BytesPerSec,
}

/// Measures the way between `cpu`, whose memory is the host's, and `gpu`.
pub(super) fn measure(
    cpu: &mut dyn Backend,
    gpu: &mut dyn Backend,
    region: &Arc<HostRegion>,
    watch: &mut Stopwatch<'_>,
) -> Result<LinkTimes, MeasureError> {
    let locked = pool::weights(COPY);
    gpu.page_lock(&locked)?;
    let mut cpu = Bench::new(cpu, region)?;
    let mut gpu = Bench::new(gpu, region)?;
    let slot = gpu.zeros([(COPY.get() >> 10) as u32, 1 << 10], DType::I8)?;
    let copies = Copies {
        locked: HostSlice::whole(locked),
        pageable: HostSlice::whole(pool::weights(COPY)),
        slot,
    };
    let mut host = vec![0; COPY.as_usize()];
    // The first copy each way pays for memory that was never touched.
    copies.up(gpu.backend())?;
    copies.down(gpu.backend(), &mut host)?;
    let mut rate = |what, run: &mut dyn FnMut() -> Res<f64>| -> Result<BytesPerSec, MeasureError> {
        let sample = watch.measure(Figure::Link(what), run)?;
        Ok(BytesPerSec::new(rounded((COPY / sample.time()).get())))
    };
    let h2d = rate("copies to the device", &mut || timed(|| copies.up(gpu.backend())))?;
    let h2d_pageable =
        rate("copies of pageable memory", &mut || timed(|| copies.up_pageable(gpu.backend())))?;
    let d2h =
        rate("copies from the device", &mut || timed(|| copies.down(gpu.backend(), &mut host)))?;
    let products = Products::new(&mut cpu)?;
    let mut beside = Beside { cpu: &mut cpu, products, gpu: gpu.backend(), rates: Vec::new() };
    let h2d_while_cpu = rate("copies to the device while the CPU computes", &mut || {
        beside.seconds(|gpu| copies.up(gpu))
    })?;
    let together = beside.cpu_rate() + h2d_while_cpu.get();
    let d2h_while_cpu = rate("copies from the device while the CPU computes", &mut || {
        beside.seconds(|gpu| copies.down(gpu, &mut host))
    })?;
    let overlap_loss = overlap_loss(&mut gpu, &copies, watch)?;
    let (submit, handoff) = crossings(&mut gpu, watch)?;
    let link = Link {
        h2d,
        h2d_while_cpu,
        h2d_pageable,
        d2h,
        d2h_while_cpu,
        handoff,
        submit,
        overlap_loss,
    };
    Ok(LinkTimes { link, dram: BytesPerSec::new(rounded(together)) })
}

/// What is copied, and where to.
struct Copies {
    locked: HostSlice,
    pageable: HostSlice,
    slot: View,
}

impl Copies {
    fn up(&self, gpu: &mut dyn Backend) -> Res<()> {
        let done = gpu.upload(self.locked.clone(), &self.slot, &[])?;
        gpu.wait(done)
    }

    fn up_pageable(&self, gpu: &mut dyn Backend) -> Res<()> {
        let done = gpu.upload(self.pageable.clone(), &self.slot, &[])?;
        gpu.wait(done)
    }

    fn down(&self, gpu: &mut dyn Backend, host: &mut [u8]) -> Res<()> {
        gpu.read(&self.slot, host, &[])
    }
}

fn timed(run: impl FnOnce() -> Res<()>) -> Res<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Copies on one thread while the CPU multiplies on another.
struct Beside<'b, 'a> {
    cpu: &'b mut Bench<'a>,
    products: Products,
    gpu: &'b mut dyn Backend,
    /// Bytes of weights that the CPU read in a second, during each measurement.
    rates: Vec<f64>,
}

impl Beside<'_, '_> {
    /// Seconds of one copy of several in a row.
    fn seconds(&mut self, mut copy: impl FnMut(&mut dyn Backend) -> Res<()> + Send) -> Res<f64> {
        let Beside { cpu, products, gpu, rates } = self;
        let gpu: &mut dyn Backend = *gpu;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let copier = scope.spawn(|| {
                let copied = timed(|| (0..IN_A_ROW).try_for_each(|_| copy(gpu)));
                done.store(true, Relaxed);
                copied
            });
            let (mut bytes, mut busy) = (Bytes::ZERO, 0.0);
            while busy == 0.0 || !done.load(Relaxed) {
                let ops = products.next(cpu, PRODUCTS);
                bytes += ops.iter().map(Op::bytes).sum();
                busy += cpu.time(&ops)?;
            }
            rates.push(bytes.get() as f64 / busy);
            let copied = copier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(copied? / IN_A_ROW as f64)
        })
    }

    /// The rate at which the CPU read meanwhile.
    fn cpu_rate(&mut self) -> f64 {
        median(&mut self.rates)
    }
}

/// Products of one token with cold matrices, one after the other.
struct Products {
    x: View,
    y: View,
}

impl Products {
    fn new(bench: &mut Bench<'_>) -> Res<Products> {
        let [rows, columns] = MATRIX;
        Ok(Products { x: bench.floats(1, columns)?, y: bench.zeros([1, rows], DType::F32)? })
    }

    /// The next `n` of them.
    fn next(&self, bench: &mut Bench<'_>, n: usize) -> Vec<Op> {
        let (x, y) = (self.x, self.y);
        let mut product = |_| Op::MatMul(MatMul { x, w: bench.cold(MATRIX, DType::F16), y });
        (0..n).map(&mut product).collect()
    }
}

/// Of copying and computing on one device at once: the share of the shorter of the two that is not hidden.
fn overlap_loss(
    gpu: &mut Bench<'_>,
    copies: &Copies,
    watch: &mut Stopwatch<'_>,
) -> Result<f64, MeasureError> {
    let copy = timed(|| copies.up(gpu.backend()))?;
    let products = Products::new(gpu)?;
    let ops = products.next(gpu, PRODUCTS);
    let once = gpu.time(&ops)? / PRODUCTS as f64;
    // About as long as the copy.
    let n = (copy / once).ceil().clamp(1.0, 10_000.0) as usize;
    let ops = products.next(gpu, n);
    let compute = gpu.time(&ops)?;
    let both = watch.measure(Figure::Link("copies while the device computes"), || {
        timed(|| {
            let gpu = gpu.backend();
            let copied = gpu.upload(copies.locked.clone(), &copies.slot, &[])?;
            let computed = gpu.submit(&ops, &[])?;
            gpu.wait(computed)?;
            gpu.wait(copied)
        })
    })?;
    let lost = both.seconds - copy.max(compute);
    Ok(rounded((lost / copy.min(compute)).clamp(0.0, 1.0)))
}

/// Fixed times of starting work on a device, and of handing it a residual or taking it back.
fn crossings(
    gpu: &mut Bench<'_>,
    watch: &mut Stopwatch<'_>,
) -> Result<(Seconds, Seconds), MeasureError> {
    let (x, weight) = (gpu.floats(1, RESIDUAL)?, gpu.floats(1, RESIDUAL)?);
    let op = norm(x, weight, x);
    let list = vec![op.clone(); SUBMITS];
    let together = gpu.time(&list)? / SUBMITS as f64;
    let apart = watch.measure(Figure::Link("starting work"), || {
        timed(|| {
            let gpu = gpu.backend();
            let submit = |_| gpu.submit(std::slice::from_ref(&op), &[]);
            let last = (0..SUBMITS).map(submit).last().expect("there are several")?;
            gpu.wait(last)
        })
    })?;
    let submit = apart.less(0.0, SUBMITS as f64).less(together, 1.0);
    let mut residual = vec![0; x.bytes().as_usize()];
    let there_and_back = watch.measure(Figure::Link("handing over"), || {
        thread::sleep(REST);
        timed(|| {
            let gpu = gpu.backend();
            gpu.write(&x, &residual)?;
            let done = gpu.submit(std::slice::from_ref(&op), &[])?;
            gpu.read(&x, &mut residual, &[done])
        })
    })?;
    let handoff = there_and_back.less(together + submit.seconds, 2.0);
    Ok((submit.time(), handoff.time()))
}
