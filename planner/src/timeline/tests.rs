//! The simulation against times that can be worked out by hand.

use super::*;
use crate::library;

/// A machine with round rates: copies 10 GB/s, 8 GB/s beside the CPU; memory 20 GB/s; no loss by overlap.
fn machine() -> MachineProfile {
    let mut machine = library::machine("rtx-5090").expect("it is built in");
    machine.cpu.dram = crate::BytesPerSec::new(20e9);
    let link = &mut machine.gpu.as_mut().expect("it has one").link;
    link.h2d = crate::BytesPerSec::new(10e9);
    link.h2d_while_cpu = crate::BytesPerSec::new(8e9);
    link.overlap_loss = 0.0;
    machine
}

fn gpu(seconds: f64) -> Step {
    Step { gpu: seconds, streamed: true, ..Step::default() }
}

fn copies(n: usize, bytes: f64, after: usize) -> Vec<Copy> {
    (0..n).map(|shard| Copy { shard, bytes, after }).collect()
}

fn steady(steps: Vec<Step>, copies: Vec<Copy>, machine: &MachineProfile) -> Shares {
    Chain { steps, copies }.run(machine, f64::INFINITY).expect("no limit").steady
}

#[track_caller]
fn about(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, not {expected}");
}

#[test]
fn without_copies_a_pass_is_the_sum_of_its_steps() {
    let cpu = Step { fixed: 0.5, cpu: 2.0, cpu_reads: 1e9, ..Step::default() };
    let gpu = Step { fixed: 0.25, gpu: 1.0, ..Step::default() };
    let shares = steady(vec![cpu, gpu], Vec::new(), &machine());
    assert_eq!(shares, Shares { cpu: 2.0, gpu: 1.0, waiting: 0.0, handoffs: 0.75 });
}

#[test]
fn much_to_copy_takes_the_time_of_copying() {
    let shares = steady(vec![gpu(1e-6); 50], copies(50, 1e8, 2), &machine());
    about(shares.total(), 50.0 * 1e8 / 10e9);
}

#[test]
fn little_to_copy_is_hidden() {
    let shares = steady(vec![gpu(1e-2); 50], copies(50, 1e7, 2), &machine());
    about(shares.total(), 0.5);
    assert_eq!(shares.waiting, 0.0);
}

#[test]
fn one_slot_cannot_be_filled_while_it_is_used() {
    let shares = steady(vec![gpu(1e-2); 20], copies(20, 1e8, 1), &machine());
    about(shares.total(), 20.0 * (1e-2 + 1e8 / 10e9));
}

#[test]
fn the_first_pass_waits_for_its_first_copy() {
    let chain = Chain { steps: vec![gpu(1e-2); 20], copies: copies(20, 5e7, 2) };
    let passes = chain.run(&machine(), f64::INFINITY).expect("no limit");
    about(passes.first.total(), 0.2 + 5e7 / 10e9);
    about(passes.steady.total(), 0.2);
}

#[test]
fn memory_gives_no_more_than_it_has() {
    // The CPU alone reads all that memory gives.
    let cpu = Step { cpu: 1e-2, cpu_reads: 1e-2 * 20e9, ..Step::default() };
    let steps = [cpu, gpu(1e-6)].repeat(30);
    let shares = steady(steps, copies(30, 8e7, 2), &machine());
    let moved = 30.0 * (cpu.cpu_reads + 8e7);
    assert!(moved / shares.total() <= 20e9 * 1.0001, "{} B/s", moved / shares.total());
    assert!(shares.total() > 0.3, "slower than without copies");
}

#[test]
fn copying_and_computing_delay_each_other_by_the_loss() {
    let mut machine = machine();
    machine.gpu.as_mut().expect("it has one").link.overlap_loss = 0.5;
    // Both take 10 ms alone: 15 ms together.
    let shares = steady(vec![gpu(1e-2); 40], copies(40, 1e8, 2), &machine);
    about(shares.total(), 40.0 * 1.5e-2);
}

#[test]
fn a_pass_beyond_the_limit_is_given_up() {
    let chain = Chain { steps: vec![gpu(1e-2); 20], copies: copies(20, 1e7, 2) };
    assert!(chain.run(&machine(), 0.19).is_none());
    assert!(chain.run(&machine(), 0.21).is_some());
}

/// A step of the CPU and the GPU at once, the GPU's part being copied.
fn shared(cpu: f64, gpu: f64) -> Step {
    Step { cpu, cpu_reads: cpu * 1e9, gpu, streamed: true, ..Step::default() }
}

#[test]
fn devices_that_share_a_step_take_the_longer_ones_time() {
    for (cpu, gpu, expected) in [(1e-2, 4e-3, 1e-2), (4e-3, 1e-2, 1e-2)] {
        let step = Step { streamed: false, ..shared(cpu, gpu) };
        about(steady(vec![step; 10], Vec::new(), &machine()).total(), 10.0 * expected);
    }
}

#[test]
fn the_gpus_part_is_copied_while_the_cpu_computes() {
    // 4e7 bytes take 5 ms beside the CPU, which computes for 10.
    about(steady(vec![shared(1e-2, 2e-3); 30], copies(30, 4e7, 2), &machine()).total(), 0.3);
    // 1.6e8 bytes: half of them in the CPU's 10 ms, the rest in another 8.
    let shares = steady(vec![shared(1e-2, 1e-7); 30], copies(30, 1.6e8, 3), &machine());
    about(shares.total(), 30.0 * 1.8e-2);
}

#[test]
fn one_copy_serves_several_ubatches() {
    // Copies take 10 ms a shard, the GPU 3 ms an ubatch: 10 ms for one, 12 for four.
    let of = |ubatches: f64| {
        steady(vec![gpu(3e-3 * ubatches); 40], copies(40, 1e8, 2), &machine()).total()
    };
    about(of(1.0), 40.0 * 1e-2);
    about(of(4.0), 40.0 * 1.2e-2);
}

#[test]
fn what_is_copied_late_waits_for_what_was_begun_before_and_goes_before_the_rest() {
    // Attention copied ahead in 10 ms and computed in 4, then experts copied late in 20 ms and computed in 3.
    let experts = Step { demand: 2e-2, gpu: 3e-3, ..Step::default() };
    let steps = [gpu(4e-3), experts].repeat(20);
    // One slot: the next attention begins after the late copy, and is hidden by 3 ms of computing.
    let one = steady(steps.clone(), copies(20, 1e8, 1), &machine());
    about(one.total(), 20.0 * (4e-3 + 2e-2 + 1e-2));
    // Two slots: it begins a layer earlier, at the experts' computing, and the late copy waits for what is left of it.
    let two = steady(steps, copies(20, 1e8, 2), &machine());
    about(two.total(), 20.0 * (1e-2 + 2e-2));
}
