//! Checks of caches: permissions, data values, and actions without meaning.

use super::*;

impl Simulation {
    /// Checks that a write that leaves part of the line unchanged starts from the current bytes.
    pub(super) fn check_written(&mut self, cache: Agent, line: Line, copy: Copy) {
        let version = self.contents.data.version(copy);
        if !self.contents.oracle.is_current(line, version) {
            let text = format!(
                "{} stores into the data of write {version} of the line, but write {} was the last",
                self.agent_name(cache),
                self.contents.oracle.latest(line)
            );
            self.fail(FailureKind::DataValue, line, text);
        }
    }

    /// Checks that bytes for a single use, which the receiver does not cache, are current when they are sent.
    #[inline]
    pub(crate) fn check_single_use(&mut self, line: Line, kind: usize, copy: Copy) {
        if self.tables.kinds[kind].is_single_use {
            let version = self.contents.data.version(copy);
            if !self.contents.oracle.is_current(line, version) {
                let text = format!(
                    "{} is sent with the data of write {version} of the line, but write {} was the last",
                    self.tables.protocol_messages[kind].name,
                    self.contents.oracle.latest(line)
                );
                self.fail(FailureKind::DataValue, line, text);
            }
        }
    }

    /// Checks a permission that an agent has gained.
    #[inline]
    pub(super) fn check_rights(&mut self, cache: Agent, line: Line, right: Right) {
        if self.neighbours.upper_level.is_some() {
            self.check_inclusion(cache, line, right);
        } else if self.caches.count() == 1
            && self.device.current.is_none()
            && self.application.is_none()
        {
            return;
        }
        if self.contents.oracle.is_excluded(line, right) {
            self.report_conflicting_permissions(cache, line, right);
        }
        let lock_right = self.lock_right(line);
        if !are_compatible(right, lock_right) {
            let text = format!(
                "{} may {right} under the device's lock",
                self.agent_name(cache)
            );
            self.fail(FailureKind::SingleWriter, line, text);
        }
    }

    /// Reports which other agents' permissions exclude the one that an agent has gained.
    #[cold]
    pub(super) fn report_conflicting_permissions(
        &mut self,
        cache: Agent,
        line: Line,
        right: Right,
    ) {
        for other in self.caches.agents().filter(|&other| other != cache) {
            let configuration = self.caches.configuration(other, line);
            let other_right = self.remote.properties(configuration).right;
            if !are_compatible(right, other_right) {
                let text = format!(
                    "{} may {right} while {} may {other_right}",
                    self.agent_name(cache),
                    self.agent_name(other)
                );
                self.fail(FailureKind::SingleWriter, line, text);
            }
        }
        if self.neighbours.upper_level.is_some() {
            let name = self.agent_name(cache);
            let text = format!(
                "{name} may {right}, but a cache below another one has a conflicting permission"
            );
            self.fail(FailureKind::SingleWriter, line, text);
        }
    }

    #[cold]
    pub(crate) fn report_unsupported(
        &mut self,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
        problem: &str,
    ) {
        let state_text = self.state_text(cache, line, configuration);
        let text = format!("{} in {state_text}: {problem}", self.agent_name(cache));
        self.fail(FailureKind::Meaningless, line, text);
    }
}
