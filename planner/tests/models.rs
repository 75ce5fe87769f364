//! The built-in models and machines: the same as the files, readable, and with the parameters that were published.

use std::collections::BTreeSet;
use std::path::Path;

use planner::{MachineProfile, ModelShape, library};

/// Names of the TOML files in a folder of this crate; none where the folder is missing.
fn files(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = folder.read_dir() else { return BTreeSet::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.strip_suffix(".toml").expect("a TOML file").to_owned()).collect()
}

/// How far off a value is, as a share of what it should be.
fn error(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0).abs()
}

fn models() -> impl Iterator<Item = ModelShape> {
    library::models().iter().map(|(name, text)| {
        ModelShape::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"))
    })
}

#[test]
fn files_and_tables_hold_the_same() {
    let models: Vec<&str> = library::model_names().collect();
    let machines: Vec<&str> = library::machine_names().collect();
    assert!(models.is_sorted() && machines.is_sorted());
    assert!(files("models").iter().eq(&models));
    assert!(files("machines").iter().eq(&machines));
}

#[test]
fn a_file_bears_the_name_within() {
    for name in library::model_names() {
        assert_eq!(library::model(name).unwrap().name, name);
    }
    for name in library::machine_names() {
        assert_eq!(library::machine(name).unwrap().name, name);
    }
}

#[test]
fn an_unknown_name_is_nothing() {
    assert_eq!(library::model("gpt-5"), None);
    assert!(library::machine("abacus").is_none());
}

#[test]
fn what_is_written_is_read_back() {
    for shape in models() {
        assert_eq!(ModelShape::from_toml(&shape.to_toml()), Ok(shape));
    }
    for (name, text) in library::machines() {
        let profile = MachineProfile::from_toml(text).unwrap();
        assert_eq!(MachineProfile::from_toml(&profile.to_toml()), Ok(profile), "{name}");
    }
}

#[test]
fn parameters_are_those_published() {
    for shape in models() {
        let (found, published) = (shape.n_parameters() as f64, shape.parameters);
        let off = error(found, published);
        println!("{:24} {found:15.0} of {published:.4e}: off by {:.2} %", shape.name, 100.0 * off);
        assert!(off <= 0.01, "{} has {found} parameters, published are {published}", shape.name);
    }
}

/// Norms and biases, which a description leaves out, may not matter to the size.
#[test]
fn bytes_are_those_of_the_published_files() {
    for (name, published) in [("gpt-oss-20b-mxfp4", 12.1e9), ("gpt-oss-120b-mxfp4", 63.4e9)] {
        let found = library::model(name).unwrap().bytes().get() as f64;
        assert!(error(found, published) <= 0.005, "{name} has {found} bytes");
    }
}
