//! `baton plan`: what a model would do on a machine, without loading weights.

use std::env;
use std::io::{self, IsTerminal, Write};

use crate::args::PlanArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::settings::{machine, planned_model};
use crate::whole_file::WholeFile;

pub(crate) fn run(args: PlanArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let machine = machine(args.machine.as_deref())?;
    let model = planned_model(&args.model, interrupt)?;
    let mut out = io::stdout().lock();
    let colour = out.is_terminal() && env::var_os("NO_COLOR").is_none();
    let answer = args.preview.answer(model.as_ref(), &machine, colour)?;
    for (path, text) in &answer.files {
        let mut file = WholeFile::create(path)?;
        file.write(text.as_bytes())?;
        file.finish()?;
    }
    out.write_all(answer.text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
}
