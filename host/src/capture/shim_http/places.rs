//! How much goes on at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Exchanges whose answer has not ended; open event streams do not count.
pub const WORK: usize = 8;
/// Event streams that are open.
pub const STREAMS: usize = 64;
/// Requests that were read whole and wait for a place; beyond, they are refused.
pub const WAITING: usize = 32;

/// The places that are free.
#[derive(Debug)]
pub struct Places {
    work: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    waiting: Semaphore,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn of(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}

impl Default for Places {
    fn default() -> Self {
        let [work, streams] = [WORK, STREAMS].map(|places| Arc::new(Semaphore::new(places)));
        Self { work, streams, waiting: Semaphore::new(WAITING) }
    }
}

impl Places {
    /// Takes a place for an exchange, after those who wait already; none if too many do.
    pub async fn enter(&self) -> Option<Place> {
        if let Ok(place) = Arc::clone(&self.work).try_acquire_owned() {
            return Some(Place::of(place));
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        Arc::clone(&self.work).acquire_owned().await.ok().map(Place::of)
    }

    /// Gives the place of an exchange up for that of a stream, if one is free.
    pub fn stream(&self, exchange: Place) -> Option<Place> {
        let stream = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        drop(exchange);
        Some(Place::of(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_are_counted_and_given_back() {
        let places = Arc::new(Places::default());
        let mut working = Vec::new();
        for _ in 0..WORK {
            working.push(places.enter().await.unwrap());
        }
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let places = Arc::clone(&places);
                tokio::spawn(async move { places.enter().await.is_some() })
            })
            .collect();
        while places.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(places.enter().await.is_none());
        let streams: Vec<Place> = (0..WORK).map(|_| places.stream(working.pop().unwrap()).unwrap()).collect();
        for waited in waiting {
            assert!(waited.await.unwrap());
        }
        let mut more = Vec::new();
        for _ in WORK..STREAMS {
            more.push(places.stream(places.enter().await.unwrap()).unwrap());
        }
        assert!(places.stream(places.enter().await.unwrap()).is_none());
        drop(streams);
        assert!(places.stream(places.enter().await.unwrap()).is_some());
        assert_eq!((places.work.available_permits(), places.waiting.available_permits()), (WORK, WAITING));
    }
}
