//! Writes the inputs of a pass to a device.

use crate::backend::{Backend, Res};
use crate::batch::PassInputs;
use crate::model::ModelConfig;
use crate::op::View;
use crate::scratch::PassViews;

pub(super) fn write_inputs(
    config: &ModelConfig,
    backend: &mut dyn Backend,
    pass: &PassViews,
    inputs: &PassInputs,
    bytes: &mut Vec<u8>,
) -> Res<()> {
    let arrays = [
        (&pass.token_ids, &inputs.token_ids),
        (&pass.positions, &inputs.positions),
        (&pass.spans, &inputs.spans),
        (&pass.output_rows, &inputs.output_rows),
    ];
    let groups = pass.cells.iter().zip(&inputs.cells);
    let cells = groups.flat_map(|(views, inputs)| {
        [(&views.written, &inputs.written), (&views.seen, &inputs.seen)]
    });
    for (view, numbers) in arrays.into_iter().chain(cells) {
        bytes.clear();
        bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        backend.write(view, bytes)?;
    }
    for (rope, view) in config.ropes.iter().zip(&pass.inv_freq) {
        if rope.depends_on_length() {
            write_inv_freq(&rope.inv_freq(inputs.longest), backend, view)?;
        }
    }
    Ok(())
}

/// Writes the rotations, as they are at the start of a sequence.
pub(super) fn write_all_inv_freq(
    config: &ModelConfig,
    backend: &mut dyn Backend,
    pass: &PassViews,
) -> Res<()> {
    let pairs = config.ropes.iter().zip(&pass.inv_freq);
    pairs.into_iter().try_for_each(|(rope, view)| write_inv_freq(&rope.inv_freq(1), backend, view))
}

fn write_inv_freq(table: &[f32], backend: &mut dyn Backend, view: &View) -> Res<()> {
    let bytes: Vec<u8> = table.iter().flat_map(|x| x.to_le_bytes()).collect();
    backend.write(view, &bytes)
}
