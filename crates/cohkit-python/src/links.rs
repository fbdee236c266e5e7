//! Rates and latencies of links.

use crate::input_error;
use cohkit_api::link_rates::{measure, LinkOptions};
use pyo3::prelude::*;

/// Latencies and rates of a link, as JSON text like that of `cohkit link
/// --json`. `delay_ns` is the one-way delay in nanoseconds, `bit_errors` the
/// errors per bit, `dma` the size of DMA transfers in bytes, and
/// `dma_settings` their quantities as `NAME=VALUE`; `None` selects the link's
/// usual value.
///
/// # Errors
/// The link cannot be configured in this way.
#[pyfunction]
#[pyo3(signature = (name, *, lanes, payload, delay_ns, bit_errors, seed, dma, dma_engine, dma_settings))]
#[expect(
    clippy::too_many_arguments,
    reason = "each is a keyword of the public function"
)]
pub(crate) fn link(
    py: Python<'_>,
    name: String,
    lanes: Option<u64>,
    payload: Option<u64>,
    delay_ns: u64,
    bit_errors: f64,
    seed: u64,
    dma: Option<u64>,
    dma_engine: Option<String>,
    dma_settings: Vec<String>,
) -> PyResult<String> {
    let options = LinkOptions {
        link: name,
        lanes,
        payload,
        delay_ns,
        bit_errors,
        seed,
        dma,
        dma_engine,
        dma_settings,
    };
    let result = py.detach(|| measure(&options));
    let report = result.map_err(|reason| input_error(&reason))?;
    Ok(report.json().to_string())
}
