//! Random plans and passes on devices that show whether the executor is right: nothing is used in no certain order, what
//! comes out is what the CPU alone gives, and as much is copied as the plan says.

mod bench;
mod drawn;
mod traffic;

use proptest::prelude::*;

use self::bench::{Bench, Model};
use self::drawn::{DrawnFault, DrawnPass, DrawnPlans, faults, passes, plans};
use crate::cancel::Cancel;
use crate::executor::ExecutorError;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Runs passes of a plan, each checked by what the CPU alone gives and by what is copied.
fn run(model: &Model, plans: &DrawnPlans, passes: &[DrawnPass]) {
    let mut bench = Bench::new(model, plans);
    for pass in passes {
        let inputs = bench.inputs(pass);
        if pass.is_cancelled {
            let cancel = Cancel::default();
            cancel.cancel();
            let result = bench.run_placed(&inputs, &cancel);
            assert!(matches!(result, Err(ExecutorError::Cancelled)), "{result:?}");
            bench.forget_pass(&inputs);
        }
        let logits = bench.run_placed(&inputs, &Cancel::default()).unwrap();
        assert_eq!(logits, bench.run_on_cpu(&inputs));
        bench.check_traffic(&inputs);
    }
    bench.end();
}

/// Runs passes of a plan, in some of which a call fails once.
fn run_with_faults(model: &Model, plans: &DrawnPlans, passes: &[DrawnPass], faults: &[DrawnFault]) {
    let mut bench = Bench::new(model, plans);
    for (pass, fault) in passes.iter().zip(faults) {
        let inputs = bench.inputs(pass);
        let expected = bench.run_on_cpu(&inputs);
        bench.set(fault);
        let logits = bench.run_placed(&inputs, &Cancel::default());
        let was_met = !bench.clear_fault();
        let logits = match logits {
            // What fails while a failed pass is cleared away is met by the next.
            Err(ExecutorError::Backend(error)) if was_met => {
                assert!(error.to_string().contains("failed"), "{error}");
                bench.run_placed(&inputs, &Cancel::default()).unwrap()
            }
            other => other.unwrap(),
        };
        assert_eq!(logits, expected, "after {fault:?}");
    }
    bench.end();
}

macro_rules! for_each_model {
    ($($name:ident, $faulty:ident: $model:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let model = $model;
                proptest!(config(500), |(plans in plans(), passes in passes())| {
                    run(&model, &plans, &passes);
                });
            }

            #[test]
            fn $faulty() {
                let model = $model;
                proptest!(config(250), |(plans in plans(), passes in passes(), faults in faults())| {
                    run_with_faults(&model, &plans, &passes, &faults);
                });
            }
        )*
    };
}

for_each_model! {
    llama, llama_with_faults: Model::fixture("llama");
    with_biases, with_biases_and_faults: Model::fixture("qwen2");
    with_experts, with_experts_and_faults: Model::fixture("qwen3moe");
    with_windows, with_windows_and_faults: Model::fixture("gemma2");
    with_many_layers, with_many_layers_and_faults: Model::fixture("gemma3");
}
