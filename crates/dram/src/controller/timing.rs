//! Timing parameters of a DRAM in clocks, from its parameters.

use crate::jedec::JedecDram;

/// A time in clocks of a DRAM's command bus.
pub(crate) type Clock = u64;

/// JEDEC timing parameters of a DRAM, in clocks.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// Duration of a burst on the data bus.
    pub burst: Clock,
    /// From a read to its first data (CL), and from a write to its first data (CWL).
    pub cl: Clock,
    pub cwl: Clock,
    /// From an activate to a column command of its bank.
    pub rcd: Clock,
    /// From a precharge to an activate of its bank.
    pub rp: Clock,
    /// From an activate to a precharge of its bank.
    pub ras: Clock,
    /// From a read to a precharge of its bank.
    pub rtp: Clock,
    /// From the last data of a write to a precharge of its bank.
    pub wr: Clock,
    /// Between two column commands of different bank groups, of one bank group, and between two writes of one bank
    /// group.
    pub ccd_s: Clock,
    pub ccd_l: Clock,
    pub ccd_l_wr: Clock,
    /// Between two activates in different bank groups, and in one bank group.
    pub rrd_s: Clock,
    pub rrd_l: Clock,
    /// Window that contains at most four activates.
    pub faw: Clock,
    /// From the last data of a write to a read in another bank group, and in the same one.
    pub wtr_s: Clock,
    pub wtr_l: Clock,
    /// From a read to a write.
    pub rtw: Clock,
    /// Interval of refreshes; 0 for none.
    pub refi: Clock,
    /// From a refresh to an activate.
    pub rfc: Clock,
}

impl Timing {
    /// Converts the parameters of a DRAM to clocks.
    pub fn new(dram: &JedecDram) -> Timing {
        let clocks = |duration| dram.clocks(duration);
        let timing = &dram.timing;
        Timing {
            burst: dram.burst_clocks.value,
            cl: clocks(timing.t_cl.value),
            cwl: clocks(timing.t_cwl.value),
            rcd: clocks(timing.t_rcd.value),
            rp: clocks(timing.t_rp.value),
            ras: clocks(timing.t_ras.value),
            rtp: clocks(timing.t_rtp.value),
            wr: clocks(timing.t_wr.value),
            ccd_s: clocks(timing.t_ccd_s.value),
            ccd_l: clocks(timing.t_ccd_l.value),
            ccd_l_wr: clocks(timing.t_ccd_l_wr.value),
            rrd_s: clocks(timing.t_rrd_s.value),
            rrd_l: clocks(timing.t_rrd_l.value),
            faw: clocks(timing.t_faw.value),
            wtr_s: clocks(timing.t_wtr_s.value),
            wtr_l: clocks(timing.t_wtr_l.value),
            rtw: clocks(timing.t_rtw.value),
            refi: clocks(timing.t_refi.value),
            rfc: clocks(timing.t_rfc.value),
        }
    }

    /// Minimum interval between two activates of one bank.
    pub fn rc(&self) -> Clock {
        self.ras + self.rp
    }
}
