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
    pub offset: u64,
    /// Bytes requested. In a completion: bytes from its first byte to the end of the request.
    pub bytes: u64,
}

impl Span {
    /// Encodes the fields as a label, 16 bits each.
    pub fn label(self) -> u64 {
        u64::from(self.tag) | self.offset << 16 | self.bytes << 32
    }

    /// Decodes a label that [`Span::label`] has encoded.
    pub fn of(label: u64) -> Span {
        Span {
            tag: label as u16,
            offset: label >> 16 & 0xffff,
            bytes: label >> 32 & 0xffff,
        }
    }
}

/// Error: unexpected completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedCompletion {
    /// Tag of the completion.
    pub tag: u16,
}

/// A request that waits for completions.
#[derive(Clone, Copy)]
struct OpenRequest {
    /// Name of the read to which the request belongs.
    read: u64,
    /// Bytes that have not arrived yet.
    remaining: u64,
}

/// Requester side.
pub struct Requester {
    /// Maximum bytes per request.
    max_request_bytes: u64,
    /// Tags of no outstanding request, in the order of their use.
    free_tags: VecDeque<u16>,
    /// Outstanding request of each tag.
    open_requests: Vec<Option<OpenRequest>>,
    /// Reads not fully requested yet: (name, address, bytes).
    queued_reads: VecDeque<(u64, u64, u64)>,
    /// Bytes outstanding of each read, oldest first: (name, bytes).
    outstanding_bytes: VecDeque<(u64, u64)>,
}

impl Requester {
    /// Creates a requester with `tags` tags and requests of at most `max_request_bytes` bytes.
    pub fn new(tags: u16, max_request_bytes: u64) -> Requester {
        Requester {
            max_request_bytes,
            free_tags: (0..tags).collect(),
            open_requests: vec![None; tags.into()],
            queued_reads: VecDeque::new(),
            outstanding_bytes: VecDeque::new(),
        }
    }

    /// Queues a read. The caller chooses the name `read`.
    pub fn queue_read(&mut self, read: u64, address: u64, bytes: u64) {
        self.queued_reads.push_back((read, address, bytes));
        self.outstanding_bytes.push_back((read, bytes));
    }

    /// Number of reads not fully requested yet.
    pub fn waiting(&self) -> usize {
        self.queued_reads.len()
    }

    /// Number of outstanding requests, each of which occupies a tag.
    pub fn open_request_count(&self) -> usize {
        self.open_requests.len() - self.free_tags.len()
    }

    /// Returns the next request, if a read is queued and a tag is free.
    pub fn next_request(&mut self) -> Option<Message> {
        let (read, address, bytes) = self.queued_reads.front_mut()?;
        let tag = self.free_tags.pop_front()?;
        let request_bytes = self
            .max_request_bytes
            .min(PAGE - *address % PAGE)
            .min(*bytes);
        let span = Span {
            tag,
            offset: *address % PAGE,
            bytes: request_bytes,
        };
        self.open_requests[usize::from(tag)] = Some(OpenRequest {
            read: *read,
            remaining: request_bytes,
        });
        *address += request_bytes;
        *bytes -= request_bytes;
        if *bytes == 0 {
            self.queued_reads.pop_front();
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
    pub fn complete(&mut self, completion: Message) -> Result<Option<u64>, UnexpectedCompletion> {
        let span = Span::of(completion.label);
        let unexpected = UnexpectedCompletion { tag: span.tag };
        let slot = self
            .open_requests
            .get_mut(usize::from(span.tag))
            .ok_or(unexpected)?;
        let request = slot.as_mut().ok_or(unexpected)?;
        let bytes = u64::from(completion.bytes);
        if request.remaining != span.bytes || bytes > request.remaining {
            return Err(unexpected);
        }
        request.remaining -= bytes;
        let read = request.read;
        if request.remaining == 0 {
            *slot = None;
            self.free_tags.push_back(span.tag);
        }
        let index = self
            .outstanding_bytes
            .iter()
            .position(|entry| entry.0 == read);
        let index = index.ok_or(unexpected)?;
        self.outstanding_bytes[index].1 -= bytes;
        if self.outstanding_bytes[index].1 > 0 {
            return Ok(None);
        }
        self.outstanding_bytes.remove(index);
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
    /// Completions of a request, in order. The request must be one of [`Requester::next_request`].
    pub fn completions(self, request: Message) -> impl Iterator<Item = Message> {
        let mut span = Span::of(request.label);
        std::iter::from_fn(move || {
            if span.bytes == 0 {
                return None;
            }
            let end = (span.offset + self.payload) / self.boundary * self.boundary;
            let bytes = span.bytes.min(end.max(span.offset + 1) - span.offset);
            let message = Message {
                circuit: COMPLETIONS,
                bytes: bytes as u16,
                label: span.label(),
            };
            span.offset += bytes;
            span.bytes -= bytes;
            Some(message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Completer, Message, Requester, Span, UnexpectedCompletion, COMPLETIONS};

    fn completion_sizes(offset: u64, bytes: u64, payload: u64) -> Vec<u64> {
        let mut requester = Requester::new(1, 4096);
        requester.queue_read(0, offset, bytes);
        let request = requester.next_request().expect("a tag is free");
        let completer = Completer {
            payload,
            boundary: 64,
        };
        completer
            .completions(request)
            .map(|m| m.bytes.into())
            .collect()
    }

    #[test]
    fn all_but_the_last_completion_end_at_a_boundary() {
        assert_eq!(completion_sizes(0, 512, 256), [256, 256]);
        assert_eq!(completion_sizes(0x10, 512, 256), [240, 256, 16]);
        assert_eq!(completion_sizes(0x3f, 2, 256), [2]);
        assert_eq!(completion_sizes(0x3f, 300, 256), [193 + 64 - 64, 107]);
        assert_eq!(completion_sizes(0, 256, 64), [64, 64, 64, 64]);
    }

    #[test]
    fn requests_have_a_tag_each_and_stay_inside_pages() {
        let mut requester = Requester::new(3, 512);
        requester.queue_read(7, 4096 - 256, 1500);
        let spans: Vec<Span> = std::iter::from_fn(|| requester.next_request())
            .map(|request| Span::of(request.label))
            .collect();
        assert_eq!(
            spans.iter().map(|s| s.bytes).collect::<Vec<_>>(),
            [256, 512, 512]
        );
        assert_eq!(
            (requester.waiting(), requester.open_request_count()),
            (1, 3)
        );
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
        let twice = UnexpectedCompletion { tag: spans[0].tag };
        assert_eq!(requester.complete(completion(spans[0])), Err(twice));
        assert_eq!(
            requester.complete(completion(Span::of(last.label))),
            Ok(None)
        );
        assert_eq!(requester.complete(completion(spans[1])), Ok(Some(7)));
    }
}
