//! Rows of the table ORDERS of the benchmark TPC-H.

use std::sync::Arc;
use tpchgen::distribution::Distributions;
use tpchgen::generators::OrderGenerator;
use tpchgen::text::TextPool;

/// What the view needs of an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// O_CUSTKEY, from 1.
    pub customer: u64,
    /// O_TOTALPRICE in cents.
    pub price: u64,
}

/// Rows of ORDERS at a scale factor of 1/1000.
pub const ROWS: u64 = 1500;

/// Bytes of text that comments are drawn from, which nobody reads: the generator's own 300 MB would take seconds.
const TEXT: i32 = 1 << 16;

/// All rows at a scale factor, which is given in thousandths, in the order of their keys.
pub fn orders(thousandths: u64) -> Arc<[Order]> {
    let distributions = Distributions::static_default();
    let text = TextPool::new(TEXT, distributions);
    let scale = thousandths as f64 / 1000.0;
    let generator =
        OrderGenerator::new_with_distributions_and_text_pool(scale, 1, 1, distributions, &text);
    let order = |order: tpchgen::generators::Order| Order {
        customer: order.o_custkey as u64,
        price: order.o_totalprice.into_inner() as u64,
    };
    generator.iter().map(order).collect()
}
