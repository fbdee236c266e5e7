//! Reads: split into tagged requests, and answered by completions that respect the read completion boundary.

use super::{COMPLETIONS, NON_POSTED};
use crate::layer::Message;
use std::collections::VecDeque;

/// Page size in bytes. No request crosses a page boundary.
const PAGE: u64 = 4096;

/// Range that a request reads, or the remaining range at a completion, encoded in a message label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Tag of the request.
    pub tag: u16,
    /// Offset of the first byte in its page.
    pub from: u64,
    /// Bytes requested. In a completion: bytes from its first byte to the end of the request.
    pub bytes: u64,
}

impl Span {
    /// Encodes the fields as a label, 16 bits each.
    pub fn label(self) -> u64 {
        u64::from(self.tag) | self.from << 16 | self.bytes << 32
    }

    /// Decodes a label.
    pub fn of(label: u64) -> Span {
        Span {
            tag: label as u16,
            from: label >> 16 & 0xffff,
            bytes: label >> 32 & 0xffff,
        }
    }
}

/// Error: unexpected completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// Tag of the completion.
    pub tag: u16,
}

#[derive(Clone, Copy)]
struct Open {
    read: u64,
    left: u64,
}

/// Requester side.
pub struct Requester {
    most: u64,
    free: VecDeque<u16>,
    open: Vec<Option<Open>>,
    /// Reads not fully requested yet: (name, address, bytes).
    wanted: VecDeque<(u64, u64, u64)>,
    /// Bytes outstanding of each read, oldest first: (name, bytes).
    left: VecDeque<(u64, u64)>,
}

impl Requester {
    /// Creates a requester with `tags` tags and requests of at most `most` bytes.
    pub fn new(tags: u16, most: u64) -> Requester {
        Requester {
            most,
            free: (0..tags).collect(),
            open: vec![None; tags.into()],
            wanted: VecDeque::new(),
            left: VecDeque::new(),
        }
    }

    /// Queues a read. The caller chooses the name `read`.
    pub fn want(&mut self, read: u64, address: u64, bytes: u64) {
        self.wanted.push_back((read, address, bytes));
        self.left.push_back((read, bytes));
    }

    /// Number of reads not fully requested yet.
    pub fn waiting(&self) -> usize {
        self.wanted.len()
    }

    /// Number of outstanding requests.
    pub fn open(&self) -> usize {
        self.open.len() - self.free.len()
    }

    /// Returns the next request, if a read is queued and a tag is free.
    pub fn next_request(&mut self) -> Option<Message> {
        let (read, address, bytes) = self.wanted.front_mut()?;
        let tag = self.free.pop_front()?;
        let now = self.most.min(PAGE - *address % PAGE).min(*bytes);
        let span = Span {
            tag,
            from: *address % PAGE,
            bytes: now,
        };
        self.open[usize::from(tag)] = Some(Open {
            read: *read,
            left: now,
        });
        *address += now;
        *bytes -= now;
        if *bytes == 0 {
            self.wanted.pop_front();
        }
        Some(Message {
            circuit: NON_POSTED,
            bytes: 0,
            label: span.label(),
        })
    }

    /// Processes a completion. Returns the name of the read that it completes, if any.
    ///
    /// # Errors
    /// No outstanding request has this tag, or the completion is not the next one of its request.
    pub fn complete(&mut self, completion: Message) -> Result<Option<u64>, Unexpected> {
        let span = Span::of(completion.label);
        let wrong = Unexpected { tag: span.tag };
        let slot = self.open.get_mut(usize::from(span.tag)).ok_or(wrong)?;
        let open = slot.as_mut().ok_or(wrong)?;
        let bytes = u64::from(completion.bytes);
        if open.left != span.bytes || bytes > open.left {
            return Err(wrong);
        }
        open.left -= bytes;
        let read = open.read;
        if open.left == 0 {
            *slot = None;
            self.free.push_back(span.tag);
        }
        let place = self.left.iter().position(|left| left.0 == read);
        let place = place.ok_or(wrong)?;
        self.left[place].1 -= bytes;
        if self.left[place].1 > 0 {
            return Ok(None);
        }
        self.left.remove(place);
        Ok(Some(read))
    }
}

/// Completer side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completer {
    /// Maximum bytes of data per completion.
    pub payload: u64,
    /// Read completion boundary: each completion but the last of a request ends at a multiple of this, in bytes.
    pub boundary: u64,
}

impl Completer {
    /// Completions of a request, in order.
    pub fn answer(self, request: Message) -> impl Iterator<Item = Message> {
        let mut span = Span::of(request.label);
        std::iter::from_fn(move || {
            if span.bytes == 0 {
                return None;
            }
            let end = (span.from + self.payload) / self.boundary * self.boundary;
            let bytes = span.bytes.min(end.max(span.from + 1) - span.from);
            let message = Message {
                circuit: COMPLETIONS,
                bytes: bytes as u16,
                label: span.label(),
            };
            span.from += bytes;
            span.bytes -= bytes;
            Some(message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(from: u64, bytes: u64, payload: u64) -> Vec<u64> {
        let mut requester = Requester::new(1, 4096);
        requester.want(0, from, bytes);
        let request = requester.next_request().expect("a tag is free");
        let completer = Completer {
            payload,
            boundary: 64,
        };
        completer.answer(request).map(|m| m.bytes.into()).collect()
    }

    #[test]
    fn all_but_the_last_completion_end_at_a_boundary() {
        assert_eq!(answers(0, 512, 256), [256, 256]);
        assert_eq!(answers(0x10, 512, 256), [240, 256, 16]);
        assert_eq!(answers(0x3f, 2, 256), [2]);
        assert_eq!(answers(0x3f, 300, 256), [193 + 64 - 64, 107]);
        assert_eq!(answers(0, 256, 64), [64, 64, 64, 64]);
    }

    #[test]
    fn requests_have_a_tag_each_and_stay_inside_pages() {
        let mut requester = Requester::new(3, 512);
        requester.want(7, 4096 - 256, 1500);
        let spans: Vec<Span> = std::iter::from_fn(|| requester.next_request())
            .map(|request| Span::of(request.label))
            .collect();
        assert_eq!(
            spans.iter().map(|s| s.bytes).collect::<Vec<_>>(),
            [256, 512, 512]
        );
        assert_eq!((requester.waiting(), requester.open()), (1, 3));
        // Completions of different requests arrive in any order; the last one of a request frees its tag.
        let completion = |span: Span| Message {
            circuit: COMPLETIONS,
            bytes: span.bytes as u16,
            label: span.label(),
        };
        assert_eq!(requester.complete(completion(spans[2])), Ok(None));
        let last = requester.next_request().expect("a tag is free again");
        assert_eq!(Span::of(last.label).tag, spans[2].tag);
        assert_eq!(requester.complete(completion(spans[0])), Ok(None));
        let twice = Unexpected { tag: spans[0].tag };
        assert_eq!(requester.complete(completion(spans[0])), Err(twice));
        assert_eq!(
            requester.complete(completion(Span::of(last.label))),
            Ok(None)
        );
        assert_eq!(requester.complete(completion(spans[1])), Ok(Some(7)));
    }
}
