//! Machines like those of the paper's Table 5, and a laptop: the fitted one, scaled by published figures of the parts.
//!
//! Nothing was measured on them. They are for previews, and say so.

use planner::{Bytes, MachineProfile};

use crate::paper::machine::{Build, Figures};

/// A machine by its parts, as shares of the fitted one's.
pub struct Derived {
    pub name: &'static str,
    gpu: &'static str,
    cpu: &'static str,
    vram: Bytes,
    ram: Bytes,
    threads: u32,
    /// Memory of the CPU, and its arithmetic with it.
    host: f64,
    /// Memory of the card.
    memory: f64,
    /// Arithmetic of the card.
    flops: f64,
    /// Copies between the two.
    link: f64,
}

pub const DERIVED: [Derived; 3] = [
    Derived {
        name: "rtx-5070-ti",
        gpu: "RTX 5070 Ti, 896 GB/s, PCIe 5 x16",
        cpu: "16 threads, DDR5-5600 in two channels",
        vram: Bytes::gib(16),
        ram: Bytes::gib(64),
        threads: 16,
        host: 0.7,
        memory: 0.5,
        flops: 0.42,
        link: 1.0,
    },
    Derived {
        name: "rtx-3060",
        gpu: "RTX 3060, 360 GB/s, PCIe 4 x16",
        cpu: "12 threads, DDR4-3200 in two channels",
        vram: Bytes::gib(12),
        ram: Bytes::gib(64),
        threads: 12,
        host: 0.38,
        memory: 0.2,
        flops: 0.2,
        link: 0.47,
    },
    Derived {
        name: "rtx-4070-laptop",
        gpu: "RTX 4070 Laptop, 256 GB/s, PCIe 4 x8",
        cpu: "16 threads, DDR5-4800 in two channels",
        vram: Bytes::gib(8),
        ram: Bytes::gib(32),
        threads: 16,
        host: 0.55,
        memory: 0.14,
        flops: 0.15,
        link: 0.24,
    },
];

impl Derived {
    /// The figures of the machine.
    pub fn figures(&self, fitted: &Figures) -> Figures {
        let mut figures = fitted.clone();
        let mut scale = |names: &[&str], factor: f64| {
            names.iter().for_each(|name| *figures.get_mut(name) *= factor);
        };
        scale(&["cpu_f16", "cpu_q4", "cpu_q2", "cpu_q6", "cpu_kv", "dram"], self.host);
        scale(&["cpu_cell", "cpu_cell_cached"], 1.0 / self.host);
        scale(&["gpu_memory", "gpu_kv"], self.memory);
        scale(&["gpu_f16", "gpu_q4", "gpu_q2", "gpu_attention"], self.flops);
        scale(&["h2d", "h2d_while_cpu", "pageable", "kv_copy"], self.link);
        figures
    }

    /// The profile of the machine.
    pub fn profile(&self, fitted: &Figures, shapes: &[planner::AttentionShape]) -> MachineProfile {
        let mut profile = self.figures(fitted).profile(Build::Sharding, shapes);
        profile.name = self.name.into();
        profile.provenance = format!(
            "not measured: rtx-5090, which is fitted to published measurements, with its host memory x {}, card \
             memory x {}, card arithmetic x {} and PCIe x {}, by published figures of the parts",
            self.host, self.memory, self.flops, self.link
        );
        profile.cpu.name = self.cpu.into();
        profile.cpu.threads = self.threads;
        profile.cpu.ram = self.ram;
        let gpu = profile.gpu.as_mut().expect("it has one");
        gpu.name = self.gpu.into();
        gpu.vram = self.vram;
        profile
    }
}
