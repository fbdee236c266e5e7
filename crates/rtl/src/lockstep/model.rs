//! The Verilated home as a loaded library: inputs, a clock edge, outputs.
//!
//! `hardware/lockstep/lockstep.cpp` implements the other side of this interface, with the same structs.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::path::Path;

/// Number of slices of a home.
pub const SLICES: usize = 2;
/// Maximum number of circuits of a slice in each direction.
pub const CIRCUITS: usize = 4;
/// Number of 64-bit words per beat of payload.
pub const BEAT: usize = 8;
/// Maximum number of units of a slice.
pub const UNITS: usize = 32;

/// One value per slice.
type Pins<T = u64> = [T; SLICES];

/// Values of the home's input pins in a cycle. Bit masks have one bit per circuit.
#[repr(C)]
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub struct Inputs {
    pub reset: u64,
    pub rx_valid: Pins,
    pub rx_header: Pins<[u64; CIRCUITS]>,
    pub rx_data: Pins<[[u64; BEAT]; CIRCUITS]>,
    pub rx_last: Pins,
    pub tx_ready: Pins,
    pub local_req_valid: Pins,
    pub local_req: Pins,
    pub unlock_valid: Pins,
    pub unlock_line: Pins,
    pub local_rsp_ready: Pins,
    pub aw_ready: Pins,
    pub w_ready: Pins,
    pub b_valid: Pins,
    pub b_id: Pins,
    pub ar_ready: Pins,
    pub r_valid: Pins,
    pub r_id: Pins,
    pub r_data: Pins<[u64; BEAT]>,
    pub r_last: Pins,
    pub cfg_aw_valid: Pins,
    pub cfg_aw_addr: Pins,
    pub cfg_w_valid: Pins,
    pub cfg_w_data: Pins,
    pub cfg_w_strb: Pins,
    pub cfg_b_ready: Pins,
    pub cfg_ar_valid: Pins,
    pub cfg_ar_addr: Pins,
    pub cfg_r_ready: Pins,
    pub change_ready: Pins,
    pub start: u64,
    pub stop: u64,
    pub app_aw_ready: Pins,
    pub app_w_ready: Pins,
    pub app_b_valid: Pins,
    pub app_b_id: Pins,
    pub app_ar_ready: Pins,
    pub app_r_valid: Pins,
    pub app_r_id: Pins,
    pub app_r_data: Pins<[u64; BEAT]>,
    pub app_r_last: Pins,
}

/// Values of the home's output pins in a cycle.
#[repr(C)]
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub struct Outputs {
    pub rx_ready: Pins,
    pub tx_valid: Pins,
    pub tx_header: Pins<[u64; CIRCUITS]>,
    pub tx_data: Pins<[[u64; BEAT]; CIRCUITS]>,
    pub tx_last: Pins,
    pub local_req_ready: Pins,
    pub unlock_ready: Pins,
    pub local_rsp_valid: Pins,
    pub local_rsp: Pins,
    pub aw_valid: Pins,
    pub aw_id: Pins,
    pub aw_addr: Pins,
    pub aw_user: Pins,
    pub w_valid: Pins,
    pub w_data: Pins<[u64; BEAT]>,
    pub w_strb: Pins,
    pub w_last: Pins,
    pub b_ready: Pins,
    pub ar_valid: Pins,
    pub ar_id: Pins,
    pub ar_addr: Pins,
    pub ar_user: Pins,
    pub r_ready: Pins,
    pub step_valid: Pins,
    pub step: Pins<[u64; UNITS]>,
    pub busy: Pins,
    pub idle: Pins,
    pub cfg_aw_ready: Pins,
    pub cfg_w_ready: Pins,
    pub cfg_b_valid: Pins,
    pub cfg_b_resp: Pins,
    pub cfg_ar_ready: Pins,
    pub cfg_r_valid: Pins,
    pub cfg_r_data: Pins,
    pub cfg_r_resp: Pins,
    pub change_valid: Pins,
    pub change: Pins,
    pub app_aw_valid: Pins,
    pub app_aw_id: Pins,
    pub app_aw_addr: Pins,
    pub app_w_valid: Pins,
    pub app_w_data: Pins<[u64; BEAT]>,
    pub app_w_strb: Pins,
    pub app_w_last: Pins,
    pub app_b_ready: Pins,
    pub app_ar_valid: Pins,
    pub app_ar_id: Pins,
    pub app_ar_addr: Pins,
    pub app_ar_lines: Pins,
    pub app_r_ready: Pins,
    pub passes: Pins,
    pub passes_r: Pins,
    pub passes_r_id: Pins,
    pub passes_r_data: Pins<[u64; BEAT]>,
    pub passes_b_id: Pins,
    pub passes_local: Pins,
    pub passes_unlock: Pins,
}

type New = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);
type Trace = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
type Step = unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs) -> *const c_char;

/// A Verilated home in a library built by [`super::build`].
pub struct Model {
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
