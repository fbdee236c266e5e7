//! The Verilated home as a loaded library: inputs, a clock edge, outputs.
//!
//! `hardware/lockstep/lockstep.cpp` implements the other side of this interface, with the same structs. Fields have
//! the names of the ports of `hardware/lockstep/lockstep.sv` without `axi_`, `_i` and `_o`; each `*_valid` and
//! `*_ready` pair is a handshake. The layouts of headers, operations, steps and permission changes are those of
//! `home_pkg.sv`.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::path::Path;

/// Number of slices of a home.
pub const SLICES: usize = 2;
/// Maximum number of circuits of a slice in each direction.
pub const CIRCUITS: usize = 4;
/// Number of 64-bit words per beat of payload.
pub const BEAT_WORDS: usize = 8;
/// Maximum number of units of a slice.
pub const UNITS: usize = 32;

/// One value per slice; index 0 is the slice of the even lines.
type Pins<T = u64> = [T; SLICES];

/// Values of the home's input pins in a cycle. Masks of the link ports have one bit per circuit; other control pins
/// are 0 or 1. The field order is part of the interface.
#[repr(C)]
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub struct Inputs {
    /// Active high, unlike the pin `rst_ni`.
    pub reset: u64,
    /// Messages to the home: mask of the circuits with a beat.
    pub rx_valid: Pins,
    /// Headers (`header_t`), valid with the first beat.
    pub rx_header: Pins<[u64; CIRCUITS]>,
    /// Payload, of which beats narrower than 512 bits use the low words.
    pub rx_data: Pins<[[u64; BEAT_WORDS]; CIRCUITS]>,
    /// Mask of the circuits whose beat is the last of its message.
    pub rx_last: Pins,
    /// Messages to the remote: mask of the circuits that accept a beat.
    pub tx_ready: Pins,
    // Local operations of the device, unlocks, and the responses to both.
    pub local_req_valid: Pins,
    /// Local operation (`local_req_t`): line in bits 0 to 35, operation from bit 36.
    pub local_req: Pins,
    /// Unlocks of the device.
    pub unlock_valid: Pins,
    /// Line number.
    pub unlock_line: Pins,
    /// Responses to local operations and unlocks.
    pub local_rsp_ready: Pins,
    // Memory port (AXI), by which the home reads and writes lines.
    pub aw_ready: Pins,
    /// Write data.
    pub w_ready: Pins,
    /// Write responses.
    pub b_valid: Pins,
    pub b_id: Pins,
    /// Read addresses.
    pub ar_ready: Pins,
    /// Read data.
    pub r_valid: Pins,
    pub r_id: Pins,
    /// Beat of the line; narrower beats use the low words.
    pub r_data: Pins<[u64; BEAT_WORDS]>,
    pub r_last: Pins,
    // Register port (AXI-Lite).
    pub cfg_aw_valid: Pins,
    /// Byte address of the register.
    pub cfg_aw_addr: Pins,
    /// Write data of a register.
    pub cfg_w_valid: Pins,
    /// Byte mask of the write.
    pub cfg_w_data: Pins,
    pub cfg_w_strb: Pins,
    /// Write response of a register.
    pub cfg_b_ready: Pins,
    /// Read address of a register.
    pub cfg_ar_valid: Pins,
    pub cfg_ar_addr: Pins,
    /// Read data of a register.
    pub cfg_r_ready: Pins,
    /// Listener to permission changes.
    pub change_ready: Pins,
    /// Starts the application of both slices, if there is one.
    pub start: u64,
    /// Stops the application of both slices.
    pub stop: u64,
    // Port of the application's own memory (AXI).
    pub app_aw_ready: Pins,
    pub app_w_ready: Pins,
    pub app_b_valid: Pins,
    pub app_b_id: Pins,
    pub app_ar_ready: Pins,
    pub app_r_valid: Pins,
    pub app_r_id: Pins,
    pub app_r_data: Pins<[u64; BEAT_WORDS]>,
    pub app_r_last: Pins,
}

/// Values of the home's output pins in a cycle, immediately before the clock edge. Data pins keep older values where
/// their `valid` is 0.
#[repr(C)]
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub struct Outputs {
    /// Messages to the home: mask of the circuits that accept a beat.
    pub rx_ready: Pins,
    /// Messages to the remote: mask of the circuits with a beat.
    pub tx_valid: Pins,
    /// Headers (`header_t`), whose message number is an index into `Rom::sends`.
    pub tx_header: Pins<[u64; CIRCUITS]>,
    /// Payload, of which beats narrower than 512 bits use the low words.
    pub tx_data: Pins<[[u64; BEAT_WORDS]; CIRCUITS]>,
    /// Mask of the circuits whose beat is the last of its message.
    pub tx_last: Pins,
    // Local operations of the device, unlocks, and the responses to both.
    pub local_req_ready: Pins,
    pub unlock_ready: Pins,
    pub local_rsp_valid: Pins,
    /// Response (`local_rsp_t`): line in bits 0 to 35, operation in bits 36 to 38, refusal in bit 39, unlock in bit
    /// 40.
    pub local_rsp: Pins,
    // Memory port (AXI). Addresses are in bytes.
    pub aw_valid: Pins,
    pub aw_id: Pins,
    /// Byte address of a line.
    pub aw_addr: Pins,
    /// Number of the message's event in bits 0 to 5; permission that the remote keeps in bits 6 and 7.
    pub aw_user: Pins,
    /// Write data.
    pub w_valid: Pins,
    /// Beat of the line; narrower beats use the low words.
    pub w_data: Pins<[u64; BEAT_WORDS]>,
    /// Byte mask of the beat.
    pub w_strb: Pins,
    pub w_last: Pins,
    /// Write responses.
    pub b_ready: Pins,
    /// Read addresses.
    pub ar_valid: Pins,
    pub ar_id: Pins,
    /// Byte address of a line.
    pub ar_addr: Pins,
    /// Number of the request's event in bits 0 to 5; permission that the remote gets in bits 6 and 7: 0 for none, 1 for
    /// read, 2 for write.
    pub ar_user: Pins,
    /// Read data.
    pub r_ready: Pins,
    /// Mask of the units that report a step.
    pub step_valid: Pins,
    /// Reported steps (`step_t`), by unit.
    pub step: Pins<[u64; UNITS]>,
    /// Mask of the units with an operation in progress.
    pub busy: Pins,
    /// One if the slice and its application have nothing outstanding.
    pub idle: Pins,
    // Register port (AXI-Lite).
    pub cfg_aw_ready: Pins,
    pub cfg_w_ready: Pins,
    pub cfg_b_valid: Pins,
    /// AXI response code: 0 for OKAY, 2 for SLVERR.
    pub cfg_b_resp: Pins,
    pub cfg_ar_ready: Pins,
    pub cfg_r_valid: Pins,
    /// Value of the register.
    pub cfg_r_data: Pins,
    /// AXI response code: 0 for OKAY, 2 for SLVERR.
    pub cfg_r_resp: Pins,
    /// Permission change of the remote for the listener.
    pub change_valid: Pins,
    /// Change (`change_t`): line in bits 0 to 35, new permission in bits 36 and 37, old one in bits 38 and 39.
    pub change: Pins,
    // Port of the application's own memory (AXI).
    pub app_aw_valid: Pins,
    pub app_aw_id: Pins,
    /// Byte address of a line.
    pub app_aw_addr: Pins,
    pub app_w_valid: Pins,
    pub app_w_data: Pins<[u64; BEAT_WORDS]>,
    /// Byte mask of the beat.
    pub app_w_strb: Pins,
    pub app_w_last: Pins,
    pub app_b_ready: Pins,
    pub app_ar_valid: Pins,
    pub app_ar_id: Pins,
    /// Byte address of the first line of the burst.
    pub app_ar_addr: Pins,
    /// Length of the read burst in lines, minus 1. The lines are those of one slice.
    pub app_ar_lines: Pins,
    pub app_r_ready: Pins,
    /// Handshakes between the home and its device side, by bit: see `handshakes_o` in `lockstep.sv`.
    pub handshakes: Pins,
    /// One if a beat of a read goes from the device side to the home.
    pub handshake_r: Pins,
    /// AXI ID of that beat.
    pub handshake_r_id: Pins,
    /// Data of that beat.
    pub handshake_r_data: Pins<[u64; BEAT_WORDS]>,
    /// AXI ID of the write response, if bit 1 of `handshakes` is set.
    pub handshake_b_id: Pins,
    /// Local operation that the device side requests, if bit 2 of `handshakes` is set.
    pub handshake_local: Pins,
    /// Line that the device side unlocks, if bit 3 of `handshakes` is set.
    pub handshake_unlock: Pins,
}

/// `lockstep_new`: path of the ROM image and further plusargs; returns the model.
type New = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;
/// `lockstep_delete`.
type Delete = unsafe extern "C" fn(*mut c_void);
/// `lockstep_trace`: model and path of the waveform; returns 0 on failure.
type Trace = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
/// `lockstep_step`: returns the messages of failed assertions, or null.
type Step = unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs) -> *const c_char;

/// A Verilated home in a library built by [`super::build`].
pub struct Model {
    /// The C++ object, owned by this struct.
    pointer: *mut c_void,
    step: Step,
    trace: Trace,
    delete: Delete,
    /// Dropped last, because the functions above belong to it.
    _library: libloading::Library,
}

impl Model {
    /// Loads a library and creates a home with the ROM's image from a file. `argument` holds further Verilog plusargs,
    /// separated by spaces and without the `+`; it may be empty.
    ///
    /// # Errors
    /// The library was not built by [`super::build`], with the reason.
    #[allow(unsafe_code)]
    pub fn open(library: &Path, image: &Path, argument: &str) -> Result<Model, String> {
        let describe = |error: libloading::Error| {
            let folder = library.parent().unwrap_or(library);
            format!(
                "cannot load the built RTL: {error}\n  help: remove {} to rebuild it",
                folder.display()
            )
        };
        let image = CString::new(image.to_string_lossy().as_bytes())
            .map_err(|_| "the image's path contains a NUL byte".to_string())?;
        let argument =
            CString::new(argument).map_err(|_| "the argument contains a NUL byte".to_string())?;
        // SAFETY: the library is the one that `build` made from sources of this version, whose initialisers do nothing
        // else than those of the C++ library, and whose functions have the types above.
        unsafe {
            let loaded = libloading::Library::new(library).map_err(describe)?;
            let new = *loaded.get::<New>(b"lockstep_new\0").map_err(describe)?;
            let (step, trace, delete) = (
                *loaded.get::<Step>(b"lockstep_step\0").map_err(describe)?,
                *loaded.get::<Trace>(b"lockstep_trace\0").map_err(describe)?,
                *loaded
                    .get::<Delete>(b"lockstep_delete\0")
                    .map_err(describe)?,
            );
            let pointer = new(image.as_ptr(), argument.as_ptr());
            Ok(Model {
                pointer,
                step,
                trace,
                delete,
                _library: loaded,
            })
        }
    }

    /// Starts to write a waveform to a file. Returns false if the file cannot be opened or the library was built
    /// without waveforms.
    #[allow(unsafe_code)]
    pub fn trace(&mut self, file: &Path) -> bool {
        let Ok(file) = CString::new(file.to_string_lossy().as_bytes()) else {
            return false;
        };
        // SAFETY: the pointer is the result of `lockstep_new`, and the text outlives the call.
        unsafe { (self.trace)(self.pointer, file.as_ptr()) != 0 }
    }

    /// Executes one cycle. The outputs are those immediately before the clock edge.
    ///
    /// # Errors
    /// Messages of failed assertions of the RTL.
    #[allow(unsafe_code)]
    pub fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs) -> Result<(), String> {
        // SAFETY: the pointer is the result of `lockstep_new`, and the structs match the C++ side. The result is null
        // or a text that is valid until the next call.
        unsafe {
            let messages = (self.step)(self.pointer, inputs, outputs);
            match messages.is_null() {
                true => Ok(()),
                false => Err(CStr::from_ptr(messages)
                    .to_string_lossy()
                    .trim()
                    .to_string()),
            }
        }
    }
}

impl Drop for Model {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the pointer is the result of `lockstep_new`, and it is not used afterwards.
        unsafe { (self.delete)(self.pointer) }
    }
}
