//! Execution of work on several threads.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle, Thread};

/// Width of hashes in bits, reduced in some tests. Defined here because threads pass it on to the threads they start.
#[cfg(test)]
pub(crate) mod hash_width {
    use std::cell::Cell;

    thread_local! {
        static BITS: Cell<u32> = const { Cell::new(u64::BITS) };
    }

    /// Width of hashes on this thread, in bits.
    pub(crate) fn bits() -> u32 {
        BITS.get()
    }

    /// Reduces the width of hashes on this thread and those that it starts.
    pub(crate) fn reduce(bits: u32) {
        BITS.set(bits);
    }
}

/// Runs `work` on each share in parallel, and returns the results in order. A panic continues in the calling thread.
/// If a thread cannot be created, the calling thread processes that share after its own.
pub(crate) fn run_in_parallel<S: Send, T: Send>(
    shares: Vec<S>,
    work: impl Fn(S) -> T + Sync,
) -> Vec<T> {
    let shares: Vec<_> = (shares.into_iter().map(|share| Mutex::new(Some(share)))).collect();
    let run_share = |share: &Mutex<Option<S>>| {
        let share = lock(share).take();
        share.map(&work)
    };
    let run_share = &run_share;
    std::thread::scope(|scope| {
        let spawned: Vec<_> = (shares.iter().skip(1))
            .map(|share| {
                #[cfg(test)]
                let bits = hash_width::bits();
                let thread = Builder::new().spawn_scoped(scope, move || {
                    #[cfg(test)]
                    hash_width::reduce(bits);
                    run_share(share)
                });
                (share, thread)
            })
            .collect();
        let own_result = shares.first().and_then(run_share);
        let spawned = spawned.into_iter().map(|(share, thread)| match thread {
            Ok(thread) => (thread.join()).unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => run_share(share),
        });
        own_result.into_iter().chain(spawned.flatten()).collect()
    })
}

/// Persistent threads for many short pieces of work. Starting a thread takes as long as many of these pieces, and a
/// persistent thread keeps its cache contents. The owner of the team is one of its threads.
#[derive(Default)]
pub(crate) struct Team {
    /// All threads but the owner.
    members: Vec<Member>,
}

/// Thread of a team, other than its owner.
struct Member {
    /// State shared with the thread.
    control: Arc<ThreadControl>,
    /// The thread; `None` once it has been joined.
    thread: Option<JoinHandle<()>>,
}

/// Shared state of a team's thread and its owner.
#[derive(Default)]
struct ThreadControl {
    /// Status: [`DONE`], [`WORK`] or [`END`]. The owner sets `WORK` and `END`, the thread sets `DONE`.
    status: AtomicUsize,
    /// The job, until the thread begins it.
    job: Mutex<Option<Job>>,
    /// Payload of a panic in the last job.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// No job, or the job is completed.
const DONE: usize = 0;
/// A job is available.
const WORK: usize = 1;
/// No further jobs will come.
const END: usize = 2;

/// Work for one thread.
struct Job {
    /// The work. It borrows from its owner's stack, which [`Team::run_in_parallel`] does not leave before the job ends.
    work: &'static (dyn Fn() + Sync),
    /// Thread that waits for the job.
    owner: Thread,
}

/// Polls before a thread sleeps, about 0.1 ms.
const POLLS_BEFORE_SLEEP: usize = 2_000;

/// Waits until `ready` returns true. The thread that makes it true must unpark this one afterwards.
fn wait(polls: usize, ready: impl Fn() -> bool) {
    for _ in 0..polls {
        if ready() {
            return;
        }
        std::hint::spin_loop();
    }
    while !ready() {
        std::thread::park();
    }
}

impl ThreadControl {
    /// Runs jobs until the team ends.
    fn serve(&self, polls: usize) {
        loop {
            wait(polls, || self.status.load(Ordering::Acquire) != DONE);
            if self.status.load(Ordering::Acquire) == END {
                return;
            }
            let Some(job) = lock(&self.job).take() else {
                return;
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(job.work)) {
                *lock(&self.panic) = Some(panic);
            }
            self.status.store(DONE, Ordering::Release);
            job.owner.unpark();
        }
    }
}

/// Locks a mutex, even if a previous holder has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Team {
    /// Creates a team of `threads` threads, including the calling thread; fewer, if the system provides no more.
    pub fn new(threads: usize) -> Team {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        // If threads share a core, polling keeps another one from working.
        let polls = if threads > cores {
            0
        } else {
            POLLS_BEFORE_SLEEP
        };
        let member = |_| {
            let control = Arc::new(ThreadControl::default());
            let own_control = control.clone();
            let thread = Builder::new()
                .spawn(move || own_control.serve(polls))
                .ok()?;
            Some(Member {
                control,
                thread: Some(thread),
            })
        };
        Team {
            members: (1..threads).map_while(member).collect(),
        }
    }

    /// A team of the calling thread only.
    pub const SINGLE_THREAD: Team = Team {
        members: Vec::new(),
    };

    /// Number of threads.
    pub fn len(&self) -> usize {
        self.members.len() + 1
    }

    /// As [`run_in_parallel`], on this team's threads, for at most as many shares.
    pub fn run_in_parallel<S: Send, T: Send>(
        &self,
        shares: Vec<S>,
        work: impl Fn(S) -> T + Sync,
    ) -> Vec<T> {
        assert!(
            shares.len() <= self.len(),
            "each share needs a thread of its own"
        );
        let slots: Vec<Mutex<(Option<S>, Option<T>)>> = (shares
            .into_iter()
            .map(|share| Mutex::new((Some(share), None))))
        .collect();
        let work = &work;
        let jobs: Vec<_> = slots
            .iter()
            .map(|slot| {
                #[cfg(test)]
                let bits = hash_width::bits();
                move || {
                    #[cfg(test)]
                    hash_width::reduce(bits);
                    let share = lock(slot).0.take();
                    let result = share.map(work);
                    lock(slot).1 = result;
                }
            })
            .collect();
        let mut jobs_left = jobs.iter().map(|job| job as &(dyn Fn() + Sync));
        let own_job = jobs_left.next();
        let busy_members: Vec<&Member> = self
            .members
            .iter()
            .zip(jobs_left)
            .map(|(member, job)| {
                member.start(job);
                member
            })
            .collect();
        let own_job = own_job.map(|job| catch_unwind(AssertUnwindSafe(job)));
        // All jobs must end before this function returns or unwinds: they borrow its locals.
        for member in &busy_members {
            member.wait_until_done();
        }
        let member_panics: Vec<_> = (busy_members.iter())
            .filter_map(|member| lock(&member.control.panic).take())
            .collect();
        if let Some(panic) = own_job
            .and_then(Result::err)
            .into_iter()
            .chain(member_panics)
            .next()
        {
            resume_unwind(panic);
        }
        let results = slots.into_iter().map(|slot| slot.into_inner());
        results.filter_map(|slot| slot.ok()?.1).collect()
    }
}

impl Member {
    /// Starts a job. The caller must wait for its end with [`Member::wait_until_done`] while the borrow is valid.
    #[allow(unsafe_code)]
    fn start(&self, work: &(dyn Fn() + Sync)) {
        // SAFETY: only the lifetime of the borrow changes. The caller waits for the end of the job with
        // `wait_until_done` while the borrow is valid.
        let work =
            unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        *lock(&self.control.job) = Some(Job {
            work,
            owner: std::thread::current(),
        });
        self.control.status.store(WORK, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Waits until the thread has completed its job.
    fn wait_until_done(&self) {
        wait(POLLS_BEFORE_SLEEP, || {
            self.control.status.load(Ordering::Acquire) == DONE
        });
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.control.status.store(END, Ordering::Release);
            if let Some(thread) = member.thread.take() {
                thread.thread().unpark();
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn team_keeps_share_order_and_survives_a_panic() {
        for threads in [1, 2, 5] {
            let team = Team::new(threads);
            for round in 0..100 {
                let shares: Vec<usize> = (0..1 + round % threads).collect();
                let doubled = team.run_in_parallel(shares.clone(), |share| 2 * share + round);
                let expected: Vec<usize> = shares.iter().map(|share| 2 * share + round).collect();
                assert_eq!(doubled, expected);
            }
            let last = threads - 1;
            let panic = catch_unwind(AssertUnwindSafe(|| {
                team.run_in_parallel((0..threads).collect(), |share| assert_ne!(share, last))
            }));
            assert!(panic.is_err());
            assert_eq!(
                team.run_in_parallel(vec![7; threads], |share| share),
                vec![7; threads]
            );
        }
    }
}
