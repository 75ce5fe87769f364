//! Reading a profile and refusing nonsense, with the name of the field.

use super::machine::{Kernels, MachineProfile, PROFILE_SCHEMA, ProductKind};
use crate::error::ProfileError;
use crate::units::{Bytes, BytesPerSec, Seconds};

impl MachineProfile {
    /// Reads a profile and checks it.
    ///
    /// # Errors
    /// Text that is no profile; figures that no machine has, such as a rate of zero.
    pub fn from_toml(text: &str) -> Result<MachineProfile, ProfileError> {
        let profile: MachineProfile = toml::from_str(text)?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers and names are TOML")
    }

    /// Refuses figures that no machine has. Whoever builds a profile other than from a file calls this first.
    ///
    /// # Errors
    /// The first such figure, by the name of its field.
    pub fn check(&self) -> Result<(), ProfileError> {
        if self.schema != PROFILE_SCHEMA {
            return Err(ProfileError::Schema { found: self.schema, known: PROFILE_SCHEMA });
        }
        time("pass", self.pass)?;
        time("request", self.request)?;
        if self.cpu.threads == 0 {
            return Err(bad("cpu.threads", 0.0, "at least 1"));
        }
        size("cpu.ram", self.cpu.ram)?;
        rate("cpu.dram", self.cpu.dram)?;
        self.cpu.kernels.check("cpu.kernels")?;
        let Some(gpu) = &self.gpu else { return Ok(()) };
        size("gpu.vram", gpu.vram)?;
        if gpu.driver >= gpu.vram {
            return Err(bad("gpu.driver", gpu.driver.get() as f64, "less than gpu.vram"));
        }
        let link = &gpu.link;
        for (field, found) in [
            ("gpu.link.h2d", link.h2d),
            ("gpu.link.h2d_while_cpu", link.h2d_while_cpu),
            ("gpu.link.h2d_pageable", link.h2d_pageable),
            ("gpu.link.d2h", link.d2h),
            ("gpu.link.d2h_while_cpu", link.d2h_while_cpu),
        ] {
            rate(field, found)?;
        }
        time("gpu.link.handoff", link.handoff)?;
        time("gpu.link.submit", link.submit)?;
        if !(0.0..=1.0).contains(&link.overlap_loss) {
            return Err(bad("gpu.link.overlap_loss", link.overlap_loss, "from 0 to 1"));
        }
        gpu.kernels.check("gpu.kernels")
    }
}

impl Kernels {
    fn check(&self, path: &str) -> Result<(), ProfileError> {
        time(&format!("{path}.op"), self.op)?;
        rate(&format!("{path}.memory"), self.memory)?;
        if !self.products.iter().any(|times| times.kind == ProductKind::Dense) {
            return Err(ProfileError::Missing { field: format!("{path}.products (dense)") });
        }
        if self.attention.is_empty() {
            return Err(ProfileError::Missing { field: format!("{path}.attention") });
        }
        for (i, times) in self.products.iter().enumerate() {
            let path = format!("{path}.products[{i}]");
            size(&format!("{path}.weights"), times.weights)?;
            if times.points.first().is_none_or(|point| point.n_tokens != 1) {
                return Err(ProfileError::Missing { field: format!("{path}.points (1 token)") });
            }
            let keys = times.points.iter().map(|point| (point.n_tokens, 0));
            rising(&format!("{path}.points"), keys)?;
            for point in &times.points {
                positive(&format!("{path}.points.seconds"), point.seconds.get())?;
            }
        }
        let sizes = self.products.iter().map(|times| (times.kind, times.format, times.weights));
        for (i, (one, next)) in sizes.clone().zip(sizes.skip(1)).enumerate() {
            if (one.0, one.1) == (next.0, next.1) && one.2 >= next.2 {
                let field = format!("{path}.products[{}].weights", i + 1);
                return Err(ProfileError::NotRising { field });
            }
        }
        for (i, times) in self.attention.iter().enumerate() {
            let path = format!("{path}.attention[{i}]");
            let shape = times.shape;
            for (name, n) in [
                ("n_head", shape.n_head),
                ("n_kv_head", shape.n_kv_head),
                ("key_dim", shape.key_dim),
                ("value_dim", shape.value_dim),
            ] {
                positive(&format!("{path}.shape.{name}"), n.into())?;
            }
            if times.points.is_empty() {
                return Err(ProfileError::Missing { field: format!("{path}.points") });
            }
            let keys = times.points.iter().map(|point| (point.n_tokens, point.n_kv));
            rising(&format!("{path}.points"), keys)?;
            for point in &times.points {
                positive(&format!("{path}.points.n_tokens"), point.n_tokens.into())?;
                positive(&format!("{path}.points.n_kv"), point.n_kv.into())?;
                positive(&format!("{path}.points.seconds"), point.seconds.get())?;
            }
        }
        Ok(())
    }
}

fn bad(field: &str, found: f64, expected: &'static str) -> ProfileError {
    ProfileError::BadValue { field: field.into(), found, expected }
}

fn positive(field: &str, found: f64) -> Result<(), ProfileError> {
    let fine = found.is_finite() && found > 0.0;
    if fine { Ok(()) } else { Err(bad(field, found, "a number above 0")) }
}

fn rate(field: &str, found: BytesPerSec) -> Result<(), ProfileError> {
    positive(field, found.get())
}

fn size(field: &str, found: Bytes) -> Result<(), ProfileError> {
    positive(field, found.get() as f64)
}

fn time(field: &str, found: Seconds) -> Result<(), ProfileError> {
    let fine = found.get().is_finite() && found.get() >= 0.0;
    if fine { Ok(()) } else { Err(bad(field, found.get(), "a number from 0")) }
}

fn rising(field: &str, keys: impl Iterator<Item = (u32, u32)>) -> Result<(), ProfileError> {
    if keys.is_sorted_by(|a, b| a < b) {
        Ok(())
    } else {
        Err(ProfileError::NotRising { field: field.into() })
    }
}
