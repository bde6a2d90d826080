//! Objects in memory that is mapped already: taking or returning one maps and unmaps nothing.

use super::bitmap::Bitmap;
use super::{AllocError, AllocRequest, Device, IovaAllocator, IovaRange};
use crate::space::{Space, SpaceError};
use lanemark_units::Iova;

/// Objects of one size in a long-lived mapping.
///
/// 128 objects of 32 B mapped one by one take 128 entries of an IOMMU's table; in one page they take one entry. Where
/// mapping is a system call, as with VFIO, it is made once.
///
/// ```
/// use lanemark_dma::{Pool, IovaRange};
/// use lanemark_units::Iova;
/// // The page of a mapping, as `mapping.range()` returns it.
/// let mut pool = Pool::over(IovaRange { at: Iova(0x1_0000), len_bytes: 4096 }, 32)?;
/// assert_eq!(pool.free_objects(), 128);
/// let object = pool.take()?;
/// assert_eq!((object.at, pool.offset(object)), (Iova(0x1_0000), Some(0)));
/// pool.give_back(object)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pool {
    space: Space,
    /// Address of the first object.
    first: u64,
    free: Bitmap,
}

impl Pool {
    /// Maximum number of objects of a pool.
    pub const MOST: u64 = 1 << 24;

    /// A pool of naturally aligned objects of `object_bytes` in `range`.
    ///
    /// # Errors
    /// [`PoolError`] if the size is no power of two, no object fits, or more than [`Pool::MOST`] fit.
    pub fn over(range: IovaRange, object_bytes: u64) -> Result<Pool, PoolError> {
        let last = range.len_bytes.checked_sub(1).and_then(|more| range.at.0.checked_add(more));
        let last = last.ok_or(PoolError::Range { range })?;
        let space = Space::between(range.at, Iova(last), object_bytes)?;
        let objects = space.free_pages();
        if objects > Pool::MOST {
            return Err(AllocError::TooMany { what: "objects", wanted: objects, most: Pool::MOST }.into());
        }
        let first = space.free_spans().first().map_or(0, |span| span.first) << space.page_bits();
        let mut free = Bitmap::none_free(objects as usize);
        for object in 0..objects as usize {
            free.put(object);
        }
        Ok(Pool { space, first, free })
    }

    /// Number of free objects.
    #[must_use]
    pub fn free_objects(&self) -> u64 {
        self.free.free()
    }

    /// Takes the lowest free object.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`] if no object is free.
    #[inline]
    pub fn take(&mut self) -> Result<IovaRange, AllocError> {
        let len_bytes = self.space.page_bytes();
        let object = self
            .free
            .take_lowest()
            .ok_or_else(|| AllocRequest::bytes(Device::default(), len_bytes).exhausted(len_bytes, 0, 0))?;
        Ok(IovaRange { at: Iova(self.first + ((object as u64) << self.space.page_bits())), len_bytes })
    }

    /// Returns an object to the pool.
    ///
    /// # Errors
    /// [`AllocError::NotOut`] if `object` is no object of this pool, or is free.
    #[inline]
    pub fn give_back(&mut self, object: IovaRange) -> Result<(), AllocError> {
        let offset = object.at.0.wrapping_sub(self.first);
        let is_object = object.len_bytes == self.space.page_bytes() && offset & (object.len_bytes - 1) == 0;
        let number = (offset >> self.space.page_bits()) as usize;
        if is_object && self.free.contains(number) && self.free.put(number) {
            Ok(())
        } else {
            Err(AllocError::NotOut { range: object })
        }
    }

    /// Offset of an object from the first object, in bytes; `None` if it is not in the pool. The host finds the object
    /// at the same offset in the mapped memory.
    #[must_use]
    pub fn offset(&self, object: IovaRange) -> Option<u64> {
        self.space.contains(object.at, object.len_bytes).then(|| object.at.0 - self.first)
    }
}

/// Reasons why a pool cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// An empty range, or one beyond the last address.
    #[error("a pool over {range}: the range is empty or ends beyond the last address")]
    Range {
        /// The requested range.
        range: IovaRange,
    },
    /// The object size is invalid, or no object fits.
    #[error("the objects of a pool are its pages: {0}")]
    Objects(#[from] SpaceError),
    /// Too many objects.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

impl IovaAllocator for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn longest_bytes(&self) -> u64 {
        self.space.page_bytes()
    }

    fn alloc(&mut self, ask: AllocRequest) -> Result<IovaRange, AllocError> {
        let wanted = super::Pages::of(ask, self.space.page_bits(), self.longest_bytes())?;
        if wanted.align > 1 {
            return Err(AllocError::Align { align_bytes: ask.align.bytes(), most_bytes: self.longest_bytes() });
        }
        self.take()
    }

    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        self.give_back(range)
    }
}
