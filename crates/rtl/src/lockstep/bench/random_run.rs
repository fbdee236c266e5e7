//! A run with random traffic: from reset to quiescence, with all checks at its end.

use super::error::{check_failed, Checked};
use super::line::Line;
use super::registers::check_registers;
use super::run::Report;
use super::testbench::Bench;
use crate::lockstep::setup::{Check, RunError, Waveform};
use cohkit_base::sequence::Sequence;

impl Bench<'_> {
    /// Runs until all messages have been exchanged and the home is quiescent.
    ///
    /// Records the waveform if requested and if the model was built with waveforms.
    ///
    /// # Errors
    /// [`RunError`], with the first mismatch.
    pub(in crate::lockstep) fn finish(
        mut self,
        waveform: Option<Waveform>,
    ) -> Result<Report, RunError> {
        let result = self.run_to_quiescence(waveform);
        let context = self.context();
        context.report.cycles = context.cycle;
        match result {
            Ok(()) => Ok(self.environment.context.report),
            Err(error) => Err(self.to_failure(error)),
        }
    }

    /// Runs to quiescence and returns the complete history of each line.
    ///
    /// # Errors
    /// [`RunError`], with the first mismatch.
    pub(in crate::lockstep) fn traces(mut self) -> Result<Vec<Sequence>, RunError> {
        self.context().is_recording_history = true;
        let result = self.run_to_quiescence(None);
        result.map_err(|error| self.to_failure(error))?;
        let lines = &self.environment.context.lines;
        Ok(lines.iter().map(Line::sequence).collect())
    }

    /// Runs until quiescence, then checks the final state and the registers. Fails if no
    /// transaction advances for 20,000 cycles plus 200 times the latencies of memory and messages.
    fn run_to_quiescence(&mut self, waveform: Option<Waveform>) -> Checked {
        self.reset()?;
        let run = self.context().run;
        let timeout_cycles = 200 * (run.max_memory_latency + run.max_message_latency) + 20_000;
        loop {
            let environment = &mut self.environment;
            let starts_accesses = environment.context.starts_accesses();
            match starts_accesses {
                true => {
                    environment.remote().attempt_accesses()?;
                    self.director.advance(environment)?;
                }
                false => self.director.release_all(environment),
            }
            (environment.device).start_operations(&mut environment.context, starts_accesses)?;
            environment.deliver()?;
            let cycle = environment.context.cycle;
            if let Some(Waveform { file, .. }) = waveform.filter(|waveform| waveform.from == cycle)
            {
                if !self.model.trace(file) {
                    self.unopened_waveform = Some(file.to_path_buf());
                    return check_failed(Check::Progress, None, "it has no waveform".into());
                }
            }
            self.execute_cycle()?;
            if !starts_accesses && self.is_quiescent() {
                self.check_final_state()?;
                return check_registers(self);
            }
            let context = self.context();
            if context.cycle - context.last_advance > timeout_cycles {
                return self.report_deadlock();
            }
        }
    }
}
