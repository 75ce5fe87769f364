//! Where the KV cells of a layer are: where its attention runs, or in host memory between two passes.

use std::sync::Arc;

use crate::backend::{Backend, HostRegion, HostSlice, Res};
use crate::kv::KvViews;
use crate::op::View;
use crate::scratch::Place;

/// Where the KV cells of a layer are.
#[derive(Debug, Clone)]
pub(super) enum KvHome {
    /// In the CPU's own cache.
    Cpu,
    /// In VRAM, there.
    Vram(KvViews),
    /// In host memory, from where they are copied to a slot for each pass. Laid out as at the start of a buffer.
    Host(Arc<HostRegion>),
}

/// The first cells of a layer's K and V, each with where they lie in its host memory.
fn parts(layer: &KvViews, n_cells: u32) -> impl Iterator<Item = (View, usize)> {
    let in_host = layer.at(Place::NOWHERE);
    let pairs = [(layer.k, in_host.k), (layer.v, in_host.v)];
    pairs
        .into_iter()
        .map(move |(view, host)| (view.first_rows(n_cells), host.offset.as_usize()))
        .filter(|(view, _)| !view.is_empty())
}

/// Reads the first cells of a layer into host memory. Nothing that was submitted may still write them.
pub(super) fn fetch(
    backend: &mut dyn Backend,
    layer: &KvViews,
    n_cells: u32,
) -> Res<Arc<HostRegion>> {
    let mut host = HostRegion::zeros(layer.room().as_usize());
    let bytes = writable(&mut host);
    for (view, start) in parts(layer, n_cells) {
        backend.read(&view, &mut bytes[start..][..view.bytes().as_usize()], &[])?;
    }
    Ok(host)
}

/// Reads the cells that a pass has written, by their rising runs. Nothing that was submitted may still write them.
///
/// # Panics
/// If the memory is in use.
pub(super) fn fetch_written(
    backend: &mut dyn Backend,
    layer: &KvViews,
    written: &[u32],
    host: &mut Arc<HostRegion>,
) -> Res<()> {
    let bytes = writable(host);
    for run in written.chunk_by(|a, b| a + 1 == *b) {
        for (view, start) in parts(layer, run[0] + run.len() as u32) {
            let skipped = view.row_bytes() * u64::from(run[0]);
            let offset = view.offset + skipped;
            let rows = View { offset, shape: [run.len() as u32, view.columns()], ..view };
            let start = start + skipped.as_usize();
            backend.read(&rows, &mut bytes[start..][..rows.bytes().as_usize()], &[])?;
        }
    }
    Ok(())
}

/// The first cells of a layer in its host memory, each part with its place on the device.
pub(super) fn slices(
    host: &Arc<HostRegion>,
    layer: &KvViews,
    n_cells: u32,
) -> Vec<(HostSlice, View)> {
    let slice = |(view, start): (View, usize)| {
        let range = start..start + view.bytes().as_usize();
        let slice = HostSlice::new(host.clone(), range).expect("host memory has room for a layer");
        (slice, view)
    };
    parts(layer, n_cells).map(slice).collect()
}

/// Writes the first cells of a layer from its host memory.
pub(super) fn store(
    backend: &mut dyn Backend,
    host: &HostRegion,
    layer: &KvViews,
    n_cells: u32,
) -> Res<()> {
    for (view, start) in parts(layer, n_cells) {
        backend.write(&view, &host.bytes()[start..][..view.bytes().as_usize()])?;
    }
    Ok(())
}

fn writable(host: &mut Arc<HostRegion>) -> &mut [u8] {
    let region = Arc::get_mut(host).expect("every copy of these cells is done");
    region.bytes_mut().expect("it was made to be written")
}
