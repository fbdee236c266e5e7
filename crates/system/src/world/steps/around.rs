//! What stands around a remote and around a home while a row of theirs is carried out.

use super::*;

/// A remote's surroundings.
pub(super) struct AroundRemote<'w, 's, 'p, D: Data> {
    pub(super) world: &'w mut World<D>,
    pub(super) system: &'s System<'p>,
    pub(super) line: u8,
    pub(super) remote: u8,
    pub(super) extent: Extent,
    pub(super) ended: &'w mut Vec<Ended<D>>,
    /// What all lines are to do when the row has been carried out.
    pub(super) every: Vec<(StateId, StateId)>,
}

impl<D: Data> AroundRemote<'_, '_, '_, D> {
    fn place(&mut self) -> &mut crate::world::Remote<D> {
        &mut self.world.line(self.line).remotes[usize::from(self.remote)]
    }

    fn ends(&mut self, found: Option<D::Copy>) {
        self.ended.push(Ended {
            line: self.line,
            remote: self.remote,
            found,
        });
    }
}

impl<D: Data> Around for AroundRemote<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Wrong = Wrong;

    fn current(&self, copy: &D::Copy) -> bool {
        self.world.data.current(self.line, copy)
    }

    fn send(&mut self, sending: Sending<D::Copy>) -> Result<(), Wrong> {
        let writes = sending.bytes == Bytes::Write && sending.to == Receiver::Home;
        let pending = writes && self.system.facts.stores_pending;
        let place = self.place();
        place.pending |= pending;
        let what = match sending.bytes {
            Bytes::Write => place.writes.clone().unwrap_or_default(),
            _ => D::Write::default(),
        };
        let from = Some(self.remote);
        self.world.send(self.system, self.line, from, what, sending)
    }

    fn write(&mut self, on: &D::Copy) -> Result<D::Copy, Wrong> {
        let what = self.place().writes.take().unwrap_or_default();
        self.ends(Some(on.clone()));
        Ok(self
            .world
            .write(self.system, self.line, on, self.extent, &what))
    }

    fn read(&mut self, copy: &D::Copy) -> Result<(), Wrong> {
        self.ends(Some(copy.clone()));
        Ok(())
    }

    fn written(&mut self, found: Option<&D::Copy>) -> Result<(), Wrong> {
        let place = self.place();
        place.writes = None;
        if place.pending {
            let what = "a write ends that the home has not performed";
            let property = agent::stores(&self.system.facts);
            return Err(Violation::new(property, what).into());
        }
        self.ends(found.cloned());
        Ok(())
    }

    fn gives_up(&mut self) {
        self.place().pending = false;
    }

    fn every(&mut self, from: StateId, to: StateId) -> Result<(), Wrong> {
        self.every.push((from, to));
        Ok(())
    }
}

/// A home's surroundings.
pub(super) struct AtHome<'w, 's, 'p, D: Data> {
    pub(super) world: &'w mut World<D>,
    pub(super) system: &'s System<'p>,
    pub(super) line: u8,
}

impl<D: Data> AtHome<'_, '_, '_, D> {
    fn place(&mut self) -> &mut Line<D> {
        self.world.line(self.line)
    }
}

impl<D: Data> AroundHome for AtHome<'_, '_, '_, D> {
    type Copy = D::Copy;
    type Wrong = Wrong;

    fn current(&self, copy: &D::Copy) -> bool {
        self.world.data.current(self.line, copy)
    }

    fn aged(&self, copy: &D::Copy) -> D::Copy {
        match self.system.facts.coherent {
            true => D::aged(copy),
            false => copy.clone(),
        }
    }

    fn send(&mut self, sending: Sending<D::Copy>) -> Result<(), Wrong> {
        let what = D::Write::default();
        self.world.send(self.system, self.line, None, what, sending)
    }

    fn memory(&self) -> D::Copy {
        self.world.lines[usize::from(self.line)].memory.clone()
    }

    fn set_memory(&mut self, copy: &D::Copy) -> Result<(), Wrong> {
        self.world.may_write(self.line)?;
        self.place().memory = copy.clone();
        Ok(())
    }

    fn lock(&self) -> Right {
        match self.world.lines[usize::from(self.line)].lock {
            Lock::Held(right) => right,
            Lock::Open | Lock::GivenBack => Right::None,
        }
    }

    fn store(&mut self, from: Option<u8>, whole: bool) -> Result<(), Wrong> {
        let facts = &self.system.facts;
        if let (true, Some(remote)) = (facts.stores_pending, from) {
            let posts = facts.posts_stores;
            let pending = &mut self.place().remotes[usize::from(remote)].pending;
            if !std::mem::take(pending) && !posts {
                let what = "a store is performed twice, or after it was given up";
                return Err(Violation::new(agent::stores(facts), what).into());
            }
        }
        let what = self.place().kept.take().unwrap_or_default();
        self.world
            .store_to_memory(self.system, self.line, whole, &what)
    }

    fn set_aside(&mut self, from: Option<u8>, whole: bool) -> Result<(), Wrong> {
        let wrong = |what: &str| Err(Violation::new("one store aside at a time", what).into());
        let place = self.place();
        match (from, &place.aside) {
            (Some(from), None) => {
                let what = place.kept.take().unwrap_or_default();
                place.aside = Some(SetAside { from, whole, what });
                Ok(())
            }
            (None, _) => wrong("the home sets a store aside that no remote has sent"),
            (_, Some(_)) => wrong("the home sets a store aside while it has one"),
        }
    }

    fn take_aside(&mut self) -> Result<(Option<u8>, bool), Wrong> {
        let place = self.place();
        match place.aside.take() {
            Some(SetAside { from, whole, what }) => {
                place.kept = D::KEEPS.then_some(what);
                Ok((Some(from), whole))
            }
            None => {
                let what = "the home writes a store that it has not set aside";
                Err(Violation::new("one store aside at a time", what).into())
            }
        }
    }

    fn start(&mut self, wish: Wish<D::Copy>) -> Result<(), Wrong> {
        let place = self.place();
        if place.operation != Operation::Idle {
            return Err(Violation::new(
                "memory operation while the slot is busy",
                "the home starts a memory operation while one is under way",
            )
            .into());
        }
        place.operation = match wish {
            Wish::Read => Operation::Read,
            Wish::Write(copy) => Operation::Write(copy),
            Wish::Store { whole } => {
                let what = place.kept.take().unwrap_or_default();
                Operation::Store { whole, what }
            }
        };
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), Wrong> {
        let about = &self.system.home.locals[usize::from(local)];
        let system = self.system;
        let place = self.place();
        if place.accepted.take() != Some(local) {
            let name = &about.name;
            return Err(Violation::new(
                "one local operation at a time",
                format!("the home acknowledges {name}, which it has not accepted"),
            )
            .into());
        }
        let name = &about.name;
        let rights = place.remotes.iter().map(|r| system.right(&r.configuration));
        if rights.max() > Some(about.ensures) {
            let what = format!(
                "a remote still has a right that it must not have when {name} is acknowledged"
            );
            return Err(Violation::new("single writer", what).into());
        }
        let memory = place.memory.clone();
        let locked = place.lock != Lock::Open;
        if !self.current(&memory) {
            let what = format!("memory is old when {name} is acknowledged");
            return Err(Violation::data_value(what).into());
        }
        if about.locks {
            if locked {
                let what = "the home locks a line that is locked";
                return Err(Violation::new("lock", what).into());
            }
            self.place().lock = Lock::Held(match about.ensures {
                Right::None => Right::Write,
                _ => Right::Read,
            });
        }
        Ok(())
    }

    fn unlocked(&mut self) {
        self.place().lock = Lock::Open;
    }
}
