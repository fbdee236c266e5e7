//! Reads: split into requests with tags, answered by completions that end where they have to.

use super::{COMPLETIONS, NON_POSTED};
use crate::layer::Message;
use std::collections::VecDeque;

/// No request crosses a boundary of so many bytes.
const PAGE: u64 = 4096;

/// What a request asks for, and what a completion still belongs to, in a message's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The tag of the request.
    pub tag: u16,
    /// The place of the first byte in its page.
    pub from: u64,
    /// Bytes that are wanted: of a completion, those from its first on.
    pub bytes: u64,
}

impl Span {
    /// As a label: 16 bits each.
    pub fn label(self) -> u64 {
        u64::from(self.tag) | self.from << 16 | self.bytes << 32
    }

    /// From a label.
    pub fn of(label: u64) -> Span {
        Span {
            tag: label as u16,
            from: label >> 16 & 0xffff,
            bytes: label >> 32 & 0xffff,
        }
    }
}

/// Why a completion is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The tag that it names.
    pub tag: u16,
}

#[derive(Clone, Copy)]
struct Open {
    read: u64,
    left: u64,
}

/// The side that reads.
pub struct Requester {
    most: u64,
    free: VecDeque<u16>,
    open: Vec<Option<Open>>,
    /// Reads that are not asked for yet: their names, addresses and bytes.
    wanted: VecDeque<(u64, u64, u64)>,
    /// Bytes that are still to come of the reads that are asked for, the oldest first.
    left: VecDeque<(u64, u64)>,
}

impl Requester {
    /// With so many tags, and requests of at most `most` bytes.
    pub fn new(tags: u16, most: u64) -> Requester {
        Requester {
            most,
            free: (0..tags).collect(),
            open: vec![None; tags.into()],
            wanted: VecDeque::new(),
            left: VecDeque::new(),
        }
    }

    /// Wants a read, under a name of the caller's.
    pub fn want(&mut self, read: u64, address: u64, bytes: u64) {
        self.wanted.push_back((read, address, bytes));
        self.left.push_back((read, bytes));
    }

    /// Reads that are not asked for in full.
    pub fn waiting(&self) -> usize {
        self.wanted.len()
    }

    /// Requests that are not answered in full.
    pub fn open(&self) -> usize {
        self.open.len() - self.free.len()
    }

    /// The next request, if there is one and a tag for it.
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

    /// A completion has come. Names the read that is whole by it.
    ///
    /// # Errors
    /// If nothing of the kind was asked for, or other bytes should come first.
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

/// The side that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completer {
    /// Most bytes of data in a completion.
    pub payload: u64,
    /// A completion that is not the last of its request ends at a multiple of so many bytes.
    pub boundary: u64,
}

impl Completer {
    /// The completions of a request, in order.
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
    fn completions_end_at_boundaries_but_the_last() {
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
        // Answers of different requests come in any order; the last of a request frees its tag.
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
