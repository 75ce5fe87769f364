//! `baton pull`: fetches a known model into the cache.

use std::io::{self, Write};

use engine_core::Cancel;

use crate::args::PullArgs;
use crate::cache::Cache;
use crate::failure::Failure;
use crate::fetch::{self, SourceError, Tools};
use crate::interrupt::Interrupt;
use crate::models::{self, KnownModel};
use crate::settings::known_model;

pub(crate) fn run(args: PullArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let cache = Cache::of_user()?;
    if args.list {
        return list(&cache).map_err(Failure::output);
    }
    let model = known_model(&args.name)?;
    let cancel = Cancel::default();
    let _watch = interrupt.watch(&cancel);
    if let Some(path) = cache.find(model) {
        match fetch::check(&path, model, &cancel) {
            Ok(()) => tell!("{} is already there and whole", model.name),
            Err(SourceError::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => {
                tell!("{} is damaged ({error}); fetching it again", path.display());
                cache.remove(model)?;
            }
        }
    }
    let path = fetch::fetch(model, &cache, &Tools::of_machine(), &cancel)?;
    writeln!(io::stdout(), "{}", path.display()).map_err(Failure::output)
}

fn list(cache: &Cache) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for model in models::KNOWN {
        let KnownModel { name, about, size, .. } = model;
        let state = if cache.find(model).is_some() { "fetched" } else { "not fetched" };
        writeln!(out, "{name}  {about}, {size}, {state}")?;
    }
    Ok(())
}
