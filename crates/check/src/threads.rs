//! Work on several threads.

/// Does something with each share, side by side, and gives the results in order; a panic goes on in this thread.
pub(crate) fn side_by_side<S: Send, T: Send>(
    shares: Vec<S>,
    work: impl Fn(S) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let mut shares = shares.into_iter();
        let own = shares.next();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        let mut results: Vec<T> = own.map(work).into_iter().collect();
        for handle in others {
            let result = handle.join();
            results.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}
