//! Rows of the ORDERS table of the TPC-H benchmark.

use std::sync::Arc;
use tpchgen::distribution::Distributions;
use tpchgen::generators::OrderGenerator;
use tpchgen::text::TextPool;

/// The columns of an order that the view uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// O_CUSTKEY, starting at 1.
    pub customer: u64,
    /// O_TOTALPRICE in cents.
    pub price: u64,
}

/// Number of rows of ORDERS per thousandth of the scale factor.
pub const ROWS: u64 = 1500;

/// Size in bytes of the text pool for comments, which are not used: the generator's default of 300 MB would take
/// seconds.
const TEXT_POOL_BYTES: i32 = 1 << 16;

/// Generates all rows in key order: `thousandths * ROWS` of them. `thousandths` is the scale factor in thousandths.
/// The result is the same in every call.
pub fn orders(thousandths: u64) -> Arc<[Order]> {
    let distributions = Distributions::static_default();
    let text = TextPool::new(TEXT_POOL_BYTES, distributions);
    let scale = thousandths as f64 / 1000.0;
    let generator =
        OrderGenerator::new_with_distributions_and_text_pool(scale, 1, 1, distributions, &text);
    let order = |order: tpchgen::generators::Order| Order {
        customer: order.o_custkey as u64,
        price: order.o_totalprice.into_inner() as u64,
    };
    generator.iter().map(order).collect()
}
