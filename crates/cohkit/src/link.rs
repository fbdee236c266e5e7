//! `cohkit link`: prints the latencies and rates of a link.

use crate::console::Console;
use crate::{deliver, options};
use cohkit_api::link_rates::{measure, LinkOptions};
use cohkit_api::outcome::{ExitStatus, Failure};

/// Measures a link, and prints its latencies and rates.
pub(crate) fn run(options: &options::Link, console: &mut Console) -> Result<ExitStatus, Failure> {
    let link_options = LinkOptions {
        link: options.link.clone(),
        lanes: options.lanes,
        payload: options.payload,
        delay_ns: options.delay,
        bit_errors: options.bit_errors,
        seed: options.seed,
        dma: options.dma,
        dma_engine: options.dma_engine.clone(),
        dma_settings: options.settings.clone(),
    };
    let report = measure(&link_options)
        .map_err(|reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}")))?;
    let result = match options.output.form.json {
        true => options.output.form.format_output(report.json(), console),
        false => report.text(),
    };
    deliver(&result, &options.output, console)?;
    Ok(ExitStatus::Success)
}
