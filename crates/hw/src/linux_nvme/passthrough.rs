//! Commands as the kernel's driver takes them, and its ioctls. Source: Linux, `include/uapi/linux/nvme_ioctl.h`.

#![allow(unsafe_code)]

use crate::nvme::{Command, NvmeError, Status};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// A command: `struct nvme_passthru_cmd`, and `struct nvme_uring_cmd`, whose last field is reserved instead of a result.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Passthrough {
    opcode: u8,
    flags: u8,
    reserved: u16,
    nsid: u32,
    dword2: u32,
    dword3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    dwords: [u32; 6],
    /// 0: the time that the kernel's driver gives every command (`nvme_core.io_timeout`). A shorter one would make it reset
    /// the controller, also for its other users.
    timeout_ms: u32,
    result: u32,
}

/// Bytes of a command.
pub(super) const BYTES: usize = size_of::<Passthrough>();

impl Passthrough {
    /// A command whose first data pointer is the address of `bytes` bytes in this process.
    pub(super) fn of(command: &Command, bytes: u32) -> Passthrough {
        let [first, _, _, address, _, ten, twelve, _] = *command.words();
        Passthrough {
            opcode: first as u8,
            nsid: (first >> 32) as u32,
            addr: address,
            data_len: bytes,
            dwords: [ten as u32, (ten >> 32) as u32, twelve as u32, 0, 0, 0],
            ..Passthrough::default()
        }
    }

    /// The command as bytes.
    pub(super) fn bytes(&self) -> [u8; BYTES] {
        // SAFETY: a structure of integers without padding.
        unsafe { std::mem::transmute(*self) }
    }
}

/// `_IOWR('N', number, SIZE)`. Source: Linux, `include/uapi/asm-generic/ioctl.h`.
const fn read_write(number: u32, bytes: usize) -> u32 {
    3 << 30 | (bytes as u32) << 16 | (b'N' as u32) << 8 | number
}

/// `NVME_IOCTL_ID`: `_IO('N', 0x40)`.
const ID: u32 = (b'N' as u32) << 8 | 0x40;
/// `NVME_IOCTL_ADMIN_CMD` and `NVME_IOCTL_IO_CMD`.
const ADMIN: u32 = read_write(0x41, BYTES);
const IO: u32 = read_write(0x43, BYTES);
/// `NVME_URING_CMD_IO`.
pub(super) const URING_IO: u32 = read_write(0x80, BYTES);

/// Identifier of the namespace of an open character device.
pub(super) fn namespace_id(file: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: it takes no argument.
    let id = unsafe { libc::ioctl(file.as_raw_fd(), ID.into()) };
    u32::try_from(id).map_err(|_| io::Error::last_os_error())
}

/// The data of an Identify command, which is made of the address of its page.
pub(super) fn identify(file: BorrowedFd<'_>, command: impl Fn(u64) -> Command) -> Result<Vec<u8>, NvmeError> {
    let mut page = vec![0_u8; 4096];
    let at = page.as_mut_ptr() as u64;
    // SAFETY: the page lives until the command has ended.
    unsafe { call(file, ADMIN, "Identify", Passthrough::of(&command(at), 4096)) }?;
    Ok(page)
}

/// Runs a read, and waits for its end.
///
/// # Safety
/// Its data pointer must be the address of as many bytes as it reads, to which no reference exists.
#[inline]
pub(super) unsafe fn read(file: BorrowedFd<'_>, command: Passthrough) -> Result<(), NvmeError> {
    // SAFETY: guaranteed by the caller.
    unsafe { call(file, IO, "Read", command) }
}

/// # Safety
/// As for [`read`].
unsafe fn call(
    file: BorrowedFd<'_>,
    request: u32,
    name: &'static str,
    mut command: Passthrough,
) -> Result<(), NvmeError> {
    // SAFETY: the ioctl takes this structure; the caller guarantees its data pointer.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), request.into(), &raw mut command) };
    let returned =
        if returned < 0 { -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) } else { returned };
    outcome(name, returned)
}

/// The outcome of a command: 0, the status of its completion, or a negated error number.
#[inline]
pub(super) fn outcome(command: &'static str, returned: i32) -> Result<(), NvmeError> {
    match returned {
        0 => Ok(()),
        error if error < 0 => Err(NvmeError::Kernel { command, error: Errno::from_raw_os_error(-error) }),
        status => Err(NvmeError::Refused { command, status: Status::of(status as u16) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::DataPointer;

    #[test]
    fn a_read_has_its_fields_where_the_kernel_reads_them() {
        let command = Passthrough::of(&Command::read(7, 0x1_2345_6789, 8, DataPointer::prp([0x20_0000, 0])), 4096);
        let bytes = command.bytes();
        let dword = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[0], dword(4), bytes.len()), (2, 7, 72));
        assert_eq!((dword(24), dword(28), dword(36)), (0x20_0000, 0, 4096));
        assert_eq!([40, 44, 48, 52, 64, 68].map(dword), [0x2345_6789, 1, 7, 0, 0, 0]);
    }

    #[test]
    fn the_numbers_of_the_ioctls_are_those_of_the_kernel() {
        assert_eq!((ID, ADMIN, IO, URING_IO), (0x4e40, 0xc048_4e41, 0xc048_4e43, 0xc048_4e80));
    }

    #[test]
    fn an_outcome_is_a_status_or_an_error_number() {
        assert_eq!(outcome("Read", 0), Ok(()));
        let said = outcome("Read", 0x4080).unwrap_err().to_string();
        assert!(said.contains("refused the command Read: LBA Out of Range (SCT 0x0, SC 0x80)"), "{said}");
        let said = outcome("Read", -libc::EACCES).unwrap_err();
        assert_eq!(said, NvmeError::Kernel { command: "Read", error: Errno::ACCESS });
    }
}
