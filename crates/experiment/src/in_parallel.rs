//! Work that is distributed over the processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{Builder, available_parallelism, scope};

/// Stack of a thread, in bytes: that of the main thread of a usual program.
const STACK_BYTES: usize = 8 << 20;

/// The results of `work` for each of `items`, in their order, computed on as many threads as there are processors. `go_on` is
/// called on the calling thread after each item; `None` if it returns `false`: items that have begun are then finished, and
/// their results discarded.
///
/// If no thread can be created, the calling thread does the work.
pub(crate) fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    work: &(impl Fn(&I) -> T + Sync),
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<T>> {
    let threads = available_parallelism().map_or(1, NonZero::get).min(items.len());
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut results: Vec<Option<T>> = items.iter().map(|_| None).collect();
    let is_to_go_on = scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            let run = move || {
                while !is_over.load(Ordering::Relaxed)
                    && let Some((place, item)) = taken(items, next)
                    && sender.send((place, work(item))).is_ok()
                {}
            };
            if Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        drop(sender);
        for (place, result) in receiver {
            results[place] = Some(result);
            if !go_on() {
                is_over.store(true, Ordering::Relaxed);
                return false;
            }
        }
        true
    });
    if !is_to_go_on {
        return None;
    }
    for (place, result) in results.iter_mut().enumerate().filter(|(_, result)| result.is_none()) {
        *result = Some(work(&items[place]));
        if !go_on() {
            return None;
        }
    }
    results.into_iter().collect()
}

/// The next item that has not begun.
fn taken<'i, I>(items: &'i [I], next: &AtomicUsize) -> Option<(usize, &'i I)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    Some((place, items.get(place)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let mut seen = 0;
        let squares = in_parallel(&items, &|item| item * item, &mut || {
            seen += 1;
            true
        });
        assert_eq!(squares, Some(items.iter().map(|item| item * item).collect()));
        assert_eq!(seen, 1000);
        assert_eq!(in_parallel(&[] as &[u64], &|item| *item, &mut || false), Some(Vec::new()));
    }

    #[test]
    fn no_work_begins_after_a_refusal_to_go_on() {
        let items: Vec<u64> = (0..100_000).collect();
        let begun = AtomicUsize::new(0);
        let work = |item: &u64| {
            begun.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_micros(100));
            *item
        };
        assert_eq!(in_parallel(&items, &work, &mut || false), None);
        assert!(begun.into_inner() < items.len());
    }
}
