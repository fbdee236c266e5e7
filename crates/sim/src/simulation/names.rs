//! Names of agents, in sentences and in charts.

use std::rc::Rc;

use cohkit_base::sequence::{homes, lifeline};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::value_text::AgentNames;

use super::*;

/// Names of the agents of a machine.
pub(crate) struct Names {
    /// Agents in sentences: caching agents, then the home.
    pub agents: Vec<String>,
    /// Lifelines of this machine's agents: its caches, then its homes.
    pub local_lifelines: Vec<String>,
    /// Agents in the values of messages and states.
    pub values: AgentNames,
    /// Lifelines of all agents, including those of other levels, in the order of charts.
    pub lifelines: Rc<[String]>,
    /// Controller of the caches.
    pub remote_controller: String,
    /// Number of lifelines before those of this machine.
    pub first_lifeline: usize,
}

impl Names {
    /// Creates the names of a machine without other levels.
    pub fn new(protocol: &Protocol, home: &Controller, remotes: Remotes) -> Names {
        let caches = 0..remotes.total();
        let mut agents: Vec<String> = caches
            .map(|remote| protocol.remote_name(&remotes, remote))
            .collect();
        let mut lifelines = match &agents[..] {
            [cache] => vec![lifeline(cache, "remote")],
            _ => agents.clone(),
        };
        agents.push(home.name.clone());
        let homes = homes(&home.name, protocol.homes).into_iter();
        let homes: Vec<String> = homes
            .map(|home| match lifelines.contains(&home) {
                true => format!("{home} (home)"),
                false => home,
            })
            .collect();
        let values = AgentNames {
            remotes: lifelines.clone(),
            homes: homes.clone(),
        };
        lifelines.extend(homes);
        Names {
            agents,
            values,
            lifelines: lifelines.clone().into(),
            local_lifelines: lifelines,
            remote_controller: protocol.remote.name.clone(),
            first_lifeline: 0,
        }
    }

    /// Renames the agents of a machine below a cache of another level: each name has the number of the cache above.
    pub fn set_cache_above(&mut self, cache: Agent) {
        let caches = 0..self.agents.len() - 1;
        let (remote, home) = (&self.remote_controller, &self.agents[caches.end]);
        let remotes = caches.map(|number| format!("{remote} {}.{number}", cache.0));
        self.values.remotes = remotes.collect();
        self.values.homes = vec![format!("{home} {}", cache.0)];
        self.agents = [&self.values.remotes[..], &self.values.homes].concat();
    }
}
