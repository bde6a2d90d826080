// The interface of lanemark_dut.h for a Verilated module with the user interface of AMD's UltraScale+ hard block: the
// streams RQ, RC, CQ and CC of 64 to 512 bits.
//
// This is the hard block as its user sees it: it turns TLPs into packets with descriptors and back, counts credits, checks
// completions against outstanding reads and reports their errors, and sends the MSI. Source of all fields, codes and rules,
// from memory and not checked against its text: PG213, "UltraScale+ Devices Integrated Block for PCI Express". rtl/README.md lists what is fixed and what is left out.
#define CLOCK user_clk
#include "../verilated_device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using Words = std::vector<uint32_t>;

// DWs of a beat, of all four streams.
constexpr size_t WIDTH = sizeof(std::declval<TOP>().m_axis_cq_tdata) / 4;
static_assert(WIDTH == 2 || WIDTH == 4 || WIDTH == 8 || WIDTH == 16, "streams of 64, 128, 256 or 512 bits only");
// Streams of 512 bits have other fields in tuser, for two packets in a beat.
constexpr bool IS_WIDE = WIDTH == 16;
// DWs of the longest tuser.
constexpr size_t USER = 6;

// Bits of a value that begin at `low`.
constexpr uint32_t field(uint32_t value, int low, int bits) { return value >> low & ((uint64_t(1) << bits) - 1); }

// The same, of a value of several DWs.
uint32_t field(const uint32_t *words, int low, int bits) {
    uint64_t two = words[low / 32];
    if (low % 32 + bits > 32) two |= uint64_t(words[low / 32 + 1]) << 32;
    return uint32_t(two >> low % 32 & ((uint64_t(1) << bits) - 1));
}

void set_field(uint32_t *words, int low, int bits, uint32_t value) {
    for (int bit = 0; bit < bits; bit++) words[(low + bit) / 32] |= (value >> bit & 1) << (low + bit) % 32;
}

template <class Port> void put(Port &port, const uint32_t *words, size_t count) {
    if constexpr (std::is_integral_v<Port>) {
        uint64_t all = words[0];
        if (count > 1) all |= uint64_t(words[1]) << 32;
        port = Port(all);
    } else {
        for (size_t word = 0; word < sizeof(Port) / 4; word++) port[word] = word < count ? words[word] : 0;
    }
}

template <class Port> void get(const Port &port, uint32_t *words, size_t count) {
    if constexpr (std::is_integral_v<Port>) {
        words[0] = uint32_t(port);
        if (count > 1) words[1] = uint32_t(uint64_t(port) >> 32);
    } else {
        for (size_t word = 0; word < count; word++) words[word] = word < sizeof(Port) / 4 ? port[word] : 0;
    }
}

// A packet on CQ or RC, and the place of the next beat.
struct Packet {
    Words words;               // descriptor and data
    std::vector<uint8_t> valid;  // enabled bytes of each word, those of the descriptor are 0
    uint32_t first_be = 0, last_be = 0;
    bool is_posted = false;
    uint64_t posted_before = 0;  // a completion follows the writes that arrived before it
    size_t next = 0;

    size_t left() const { return words.size() - next; }
};

// A TLP to the link, and what it costs.
struct Tlp {
    std::vector<uint8_t> bytes;
    enum Kind { POSTED, NON_POSTED, COMPLETION } kind = POSTED;
    uint32_t data_credits = 0;
    uint32_t sequence = 0, tag = 0;
    bool is_msi = false;
};

// An outstanding read.
struct Read {
    bool is_open = false, is_sent = false;
    uint64_t address = 0;  // of the next expected byte
    uint32_t left = 0;     // bytes
    uint16_t requester = 0;
    uint8_t tc_attr = 0;
    uint32_t clocks = 0;
};

// The header of a TLP.
struct Header {
    uint32_t dw[4] = {};
    bool has_data() const { return dw[0] >> 30 & 1; }
    bool is_long() const { return dw[0] >> 29 & 1; }
    uint32_t type() const { return field(dw[0], 24, 5); }
    uint32_t length() const { return field(dw[0], 0, 10) ? field(dw[0], 0, 10) : 1024; }
    uint32_t tc() const { return field(dw[0], 20, 3); }
    uint32_t attr() const { return field(dw[0], 12, 2) | field(dw[0], 18, 1) << 2; }
    bool has_digest() const { return dw[0] >> 15 & 1; }
    bool is_poisoned() const { return dw[0] >> 14 & 1; }
};

uint32_t first_dw(uint32_t fmt_type, uint32_t tc, uint32_t attr, bool is_poisoned, uint32_t length) {
    return fmt_type << 24 | tc << 20 | (attr >> 2) << 18 | uint32_t(is_poisoned) << 14 | (attr & 3) << 12 | (length & 1023);
}

void append_big_endian(std::vector<uint8_t> &bytes, uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(uint8_t(word >> shift));
}

void append_data(std::vector<uint8_t> &bytes, uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(uint8_t(word >> shift));
}

// A stream from the user: collects the beats of a packet and checks its handshake.
struct Collector {
    const char *name;
    size_t descriptor;  // DWs
    Words words = {};
    uint32_t user[USER] = {};  // of the first beat
    bool is_discontinued = false;
    bool was_offered = false;  // a beat was offered and not taken

    struct Beat {
        bool is_valid, is_ready, is_last;
        uint32_t keep;
        uint32_t data[WIDTH];
        uint32_t user[USER];
        bool discontinues;
    };

    void clear() { words.clear(), is_discontinued = was_offered = false; }

    // Takes the beat of a clock; returns whether it ends a packet.
    bool take(const Beat &beat, Verilated_device &device) {
        auto wrong = [&](const std::string &what) { device.fail(std::string("s_axis_") + name + ": " + what); };
        if (!beat.is_valid) {
            if (was_offered) wrong("tvalid falls before tready");
            // PG213 treats that as an error and nullifies the TLP.
            if (!words.empty()) wrong("tvalid is 0 inside a packet");
            return false;
        }
        was_offered = !beat.is_ready;
        if (!beat.is_ready) return false;
        if (words.empty()) std::copy_n(beat.user, USER, user);
        size_t count = size_t(std::popcount(beat.keep));
        if (beat.keep != (uint32_t(1) << count) - 1 || count == 0 || count < WIDTH && !beat.is_last)
            wrong("tkeep has a gap, or is not all ones before tlast");
        words.insert(words.end(), beat.data, beat.data + count);
        is_discontinued |= beat.discontinues;
        return beat.is_last;
    }
};

struct Device : Verilated_device {
    // From the link.
    std::vector<uint8_t> incoming;
    uint8_t bar = 0;
    std::deque<Packet> cq, rc;
    uint64_t posted_arrived = 0, posted_taken = 0;
    // To the link.
    Collector rq_in{"rq", 4}, cc_in{"cc", 3};
    std::deque<Tlp> requests, completions;
    Tlp sending;
    size_t sent = 0;
    bool is_sending = false;
    uint32_t used_headers = 0, used_data = 0, used_reads = 0;
    std::array<Read, 256> reads{};
    // Signals for one clock.
    std::deque<uint32_t> sequences;
    bool msi_sent = false, msi_failed = false;
    uint32_t vectors = 0;  // of the last clock
    bool is_in_flr = false;
    uint32_t stalls = 0xACE1;

    void reset() {
        incoming.clear(), cq.clear(), rc.clear(), requests.clear(), completions.clear(), sequences.clear();
        rq_in.clear(), cc_in.clear();
        posted_arrived = posted_taken = 0;
        is_sending = msi_sent = msi_failed = is_in_flr = false;
        vectors = 0;
        used_headers = used_data = used_reads = 0;
        reads = {};
    }

    // A function-level reset: what is being sent is sent to its end, and the rest of the queues is dropped; outstanding reads
    // are terminated.
    void reset_function() {
        requests.clear(), completions.clear();
        rq_in.is_discontinued |= !rq_in.words.empty(), cc_in.is_discontinued |= !cc_in.words.empty();
        bool is_taken = !cq.empty() && cq.front().next > 0;
        cq.resize(is_taken ? 1 : 0);
        posted_taken = posted_arrived - (is_taken && cq.front().is_posted);
        is_in_flr = true;
        for (size_t tag = 0; tag < reads.size(); tag++) terminate(tag, 8);
    }

    // Ends a read without a completion.
    void terminate(size_t tag, uint32_t error) {
        if (!reads[tag].is_open) return;
        Packet packet;
        packet.words = {error << 12 | 1u << 30, uint32_t(reads[tag].requester) << 16, uint32_t(tag)};
        packet.valid.assign(3, 0);
        packet.posted_before = posted_arrived;
        rc.push_back(packet);
        reads[tag].is_open = false;
    }

    void count_timeouts(uint32_t clocks) {
        for (size_t tag = 0; tag < reads.size(); tag++) {
            if (reads[tag].is_open && reads[tag].is_sent && ++reads[tag].clocks > clocks) terminate(tag, 9);
        }
    }

    // A whole TLP from the link.
    void arrive(uint16_t own_id) {
        std::vector<uint8_t> bytes;
        std::swap(bytes, incoming);
        Header header;
        if (bytes.size() < 12 || bytes.size() % 4) return;
        auto dw = [&](size_t at) {
            const uint8_t *byte = &bytes[4 * at];
            return uint32_t(byte[0]) << 24 | uint32_t(byte[1]) << 16 | uint32_t(byte[2]) << 8 | byte[3];
        };
        header.dw[0] = dw(0);
        size_t head = header.is_long() ? 4 : 3;
        size_t data = header.has_data() ? header.length() : 0;
        // A malformed TLP is dropped.
        if (bytes.size() != 4 * (head + data + header.has_digest())) return;
        for (size_t at = 1; at < head; at++) header.dw[at] = dw(at);
        Words words;
        for (size_t at = head; at < head + data; at++) words.push_back(__builtin_bswap32(dw(at)));
        if (header.type() == 0) {
            request(header, words, own_id);
        } else if (header.type() == 10 && !header.is_long()) {
            completion(header, words);
        }
    }

    void request(const Header &header, const Words &data, uint16_t own_id) {
        bool is_write = header.has_data();
        // No descriptor tells the user that a write is poisoned.
        if (is_write && header.is_poisoned()) return;
        uint32_t high = header.is_long() ? header.dw[2] : 0, low = header.is_long() ? header.dw[3] : header.dw[2];
        Packet packet;
        packet.first_be = field(header.dw[1], 0, 4), packet.last_be = field(header.dw[1], 4, 4);
        const uint32_t aperture = 16;  // BARs of 64 KiB
        packet.words = {
            low & ~3u, high, header.length() | uint32_t(is_write) << 11 | field(header.dw[1], 16, 16) << 16,
            field(header.dw[1], 8, 8) | uint32_t(own_id & 255) << 8 | uint32_t(bar) << 16 | aperture << 19 | header.tc() << 25 |
                header.attr() << 28};
        packet.valid.assign(4, 0);
        for (size_t at = 0; at < data.size(); at++) {
            packet.words.push_back(data[at]);
            bool is_first = at == 0, is_last = at + 1 == data.size();
            packet.valid.push_back(uint8_t(is_first ? packet.first_be : is_last ? packet.last_be : 15));
        }
        packet.is_posted = is_write;
        posted_arrived += is_write;
        cq.push_back(packet);
    }

    void completion(const Header &header, const Words &data) {
        uint32_t status = field(header.dw[1], 13, 3), tag = field(header.dw[2], 8, 8), lower = field(header.dw[2], 0, 7);
        uint32_t count = field(header.dw[1], 0, 12) ? field(header.dw[1], 0, 12) : 4096;
        uint32_t requester = field(header.dw[2], 16, 16), completer = field(header.dw[1], 16, 16);
        Read &read = reads[tag];
        uint8_t tc_attr = uint8_t(header.tc() | header.attr() << 3);
        // The first row of the table of error codes that applies.
        bool is_known = read.is_open && read.is_sent;
        uint32_t error = !is_known                                                     ? 6
                         : read.requester != requester || read.tc_attr != tc_attr      ? 4
                         : status != 0                                                 ? 2
                         : data.empty() || count > read.left                           ? 3
                         : lower != (read.address & 127)                               ? 5
                         : header.is_poisoned()                                        ? 1
                                                                                       : 0;
        uint32_t carried = std::min<uint32_t>(count, uint32_t(data.size()) * 4 - std::min<uint32_t>(4 * data.size(), lower & 3));
        // The block knows how many bytes are missing; a byte count that is too small is the user's to find.
        bool is_last = status != 0 || error == 3 || carried >= read.left;
        bool ends = error != 6 && error != 4 && error != 5 && is_last;
        Packet packet;
        uint32_t place = is_known ? uint32_t(read.address & 0xF80) | lower : lower;
        packet.words = {
            place | error << 12 | count << 16 | uint32_t(ends) << 30,
            uint32_t(data.size()) | status << 11 | uint32_t(header.is_poisoned()) << 14 | requester << 16,
            tag | completer << 8 | header.tc() << 25 | header.attr() << 28};
        packet.valid.assign(3, 0);
        for (size_t at = 0; at < data.size(); at++) {
            packet.words.push_back(data[at]);
            uint8_t valid = 0;
            for (uint32_t byte = 0; byte < 4; byte++) {
                uint32_t place_of = uint32_t(at) * 4 + byte;
                if (place_of >= (lower & 3) && place_of < (lower & 3) + carried) valid |= uint8_t(1u << byte);
            }
            packet.valid.push_back(valid);
        }
        packet.posted_before = posted_arrived;
        rc.push_back(packet);
        if (error == 0 || error == 1) read.address += carried, read.left -= std::min(read.left, carried);
        if (ends) read.is_open = false;
    }

    // Whether the first completion may be offered: it does not pass earlier writes.
    bool offers_completion() const { return !rc.empty() && rc.front().posted_before <= posted_taken; }

    // A packet of RQ.
    void request_of_user(uint16_t own_id) {
        Words words;
        std::swap(words, rq_in.words);
        bool is_dropped = std::exchange(rq_in.is_discontinued, false);
        if (words.size() < 4) return fail("s_axis_rq: a packet ends in its descriptor");
        uint32_t kind = field(words[2], 11, 4), length = field(words[2], 0, 11);
        if (kind > 1) return fail("s_axis_rq: request type " + std::to_string(kind) + " is not supported here");
        size_t data = kind == 1 ? length : 0;
        if (length == 0 || length > 1024 || words.size() != 4 + data) {
            return fail("s_axis_rq: the descriptor announces " + std::to_string(length) + " DW, and " +
                        std::to_string(words.size() - 4) + " DW of data follow");
        }
        if (is_dropped) return;
        uint32_t attr = field(words[3], 28, 3), tc = field(words[3], 25, 3), tag = field(words[3], 0, 8);
        uint16_t requester = field(words[3], 24, 1) ? uint16_t(words[2] >> 16) : own_id;
        uint32_t first_be = field(rq_in.user, 0, 4), last_be = field(rq_in.user, IS_WIDE ? 8 : 4, 4);
        bool is_long = words[1] != 0;
        Tlp tlp;
        tlp.kind = kind == 1 ? Tlp::POSTED : Tlp::NON_POSTED;
        tlp.data_credits = uint32_t(data + 3) / 4;
        tlp.tag = tag;
        tlp.sequence = IS_WIDE ? field(rq_in.user, 61, 6) : field(rq_in.user, 24, 4) | field(rq_in.user, 60, 2) << 4;
        append_big_endian(tlp.bytes, first_dw(kind << 6 | uint32_t(is_long) << 5, tc, attr, field(words[2], 15, 1), length));
        append_big_endian(tlp.bytes, uint32_t(requester) << 16 | tag << 8 | last_be << 4 | first_be);
        if (is_long) append_big_endian(tlp.bytes, words[1]);
        append_big_endian(tlp.bytes, words[0] & ~3u);
        for (size_t at = 4; at < words.size(); at++) append_data(tlp.bytes, words[at]);
        if (kind == 0) {
            uint32_t skipped = first_be ? uint32_t(std::countr_zero(first_be)) : 0;
            // Disabled bytes behind the last enabled one; a read of no bytes has a completion of one.
            uint32_t enabled = length > 1 ? last_be : first_be;
            uint32_t missing = enabled ? uint32_t(std::countl_zero(enabled << 28)) : 3;
            uint64_t address = (uint64_t(words[1]) << 32 | (words[0] & ~3u)) + skipped;
            reads[tag] = {true, false, address, length * 4 - skipped - missing, requester, uint8_t(tc | attr << 3), 0};
        }
        requests.push_back(tlp);
    }

    // A packet of CC.
    void completion_of_user(uint16_t own_id) {
        Words words;
        std::swap(words, cc_in.words);
        bool is_dropped = std::exchange(cc_in.is_discontinued, false);
        if (words.size() < 3) return fail("s_axis_cc: a packet ends in its descriptor");
        uint32_t length = field(words[1], 0, 11);
        if (length > 1024 || words.size() != 3 + length) {
            return fail("s_axis_cc: the descriptor announces " + std::to_string(length) + " DW, and " +
                        std::to_string(words.size() - 3) + " DW of data follow");
        }
        if (is_dropped) return;
        uint16_t completer = field(words[2], 24, 1) ? uint16_t(field(words[2], 8, 16)) : own_id;
        Tlp tlp;
        tlp.kind = Tlp::COMPLETION;
        uint32_t type = length ? 0x4A : 0x0A;
        append_big_endian(tlp.bytes, first_dw(type, field(words[2], 25, 3), field(words[2], 28, 3), field(words[1], 14, 1), length));
        append_big_endian(tlp.bytes, uint32_t(completer) << 16 | field(words[1], 11, 3) << 13 | (field(words[0], 16, 13) & 4095));
        append_big_endian(tlp.bytes, field(words[1], 16, 16) << 16 | field(words[2], 0, 8) << 8 | field(words[0], 0, 7));
        for (size_t at = 3; at < words.size(); at++) append_data(tlp.bytes, words[at]);
        completions.push_back(tlp);
    }

    // A request begins with the clock in which a bit of cfg_interrupt_msi_int is set.
    void interrupt(const lanemark_dut_in &in, uint32_t now) {
        uint32_t wanted = now & ~std::exchange(vectors, now);
        if (!wanted) return;
        if (!in.msi_enable) {
            msi_failed = true;
            return;
        }
        Tlp tlp;
        tlp.is_msi = true;
        tlp.data_credits = 1;
        bool is_long = in.msi_address >> 32;
        append_big_endian(tlp.bytes, first_dw(is_long ? 0x60 : 0x40, 0, 0, false, 1));
        append_big_endian(tlp.bytes, uint32_t(in.requester_id) << 16 | 15);
        if (is_long) append_big_endian(tlp.bytes, uint32_t(in.msi_address >> 32));
        append_big_endian(tlp.bytes, uint32_t(in.msi_address));
        append_data(tlp.bytes, in.msi_data | uint32_t(std::countr_zero(wanted)));
        requests.push_back(tlp);
    }

    // Whether a request may be sent: with Bus Master Enable, if the host has room (PCI Express Base Specification 5.0,
    // section 2.6.1).
    bool fits(const Tlp &tlp, const lanemark_dut_in &in) const {
        if (!in.bus_master) return false;
        auto has_room = [](uint32_t limit, uint32_t used, uint32_t bits) {
            uint32_t modulo = 1u << bits;
            return ((limit - used) & (modulo - 1)) <= modulo / 2;
        };
        if (tlp.kind == Tlp::NON_POSTED) return has_room(in.non_posted_headers, used_reads + 1, 8);
        return has_room(in.posted_headers, used_headers + 1, 8) && has_room(in.posted_data, used_data + tlp.data_credits, 12);
    }

    // Chooses the next TLP: a completion may pass the requests that no sequence number has reported yet, and a write the reads
    // that wait for credits.
    void choose(const lanemark_dut_in &in) {
        if (is_sending) return;
        if (!completions.empty()) {
            sending = std::move(completions.front());
            completions.pop_front();
            is_sending = true, sent = 0;
            return;
        }
        bool has_read_before = false;
        for (size_t at = 0; at < requests.size(); at++) {
            const Tlp &tlp = requests[at];
            bool is_read = tlp.kind == Tlp::NON_POSTED;
            if (fits(tlp, in) && !(is_read && has_read_before)) {
                (is_read ? used_reads : used_headers) += 1;
                used_data += is_read ? 0 : tlp.data_credits;
                // The completion timeout begins when the read is sent.
                if (is_read) reads[tlp.tag].is_sent = true;
                sending = std::move(requests[at]);
                requests.erase(requests.begin() + std::ptrdiff_t(at));
                is_sending = true, sent = 0;
                return;
            }
            // Nothing passes a write.
            if (!is_read) return;
            has_read_before = true;
        }
    }

    bool stall() {
        // A 16-bit LFSR: every fourth clock on average.
        stalls = stalls >> 1 ^ (stalls & 1 ? 0xB400u : 0);
        return (stalls & 3) == 0;
    }
};

// Offers the next beat of a packet.
template <class Data, class Keep, class Last, class User>
void offer(const Packet *packet, Data &data, Keep &keep, Last &last, User &user, bool is_cq) {
    uint32_t words[WIDTH] = {}, sideband[USER] = {};
    uint32_t kept = 0;
    bool is_last = false;
    if (packet) {
        size_t count = std::min(packet->left(), WIDTH);
        bool is_first = packet->next == 0;
        is_last = count == packet->left();
        kept = (1u << count) - 1;
        int enables = !is_cq ? 0 : IS_WIDE ? 16 : 8;
        for (size_t at = 0; at < count; at++) {
            words[at] = packet->words[packet->next + at];
            set_field(sideband, enables + int(4 * at), 4, packet->valid[packet->next + at]);
        }
        if (is_cq && is_first) {
            set_field(sideband, 0, 4, packet->first_be);
            set_field(sideband, IS_WIDE ? 8 : 4, 4, packet->last_be);
        }
        // is_sop and is_eop with the place of the last DW; CQ of up to 256 bits has the first only.
        set_field(sideband, is_cq ? (IS_WIDE ? 80 : 40) : (IS_WIDE ? 64 : 32), 1, is_first);
        if (is_last && (IS_WIDE || !is_cq)) {
            set_field(sideband, is_cq ? 86 : IS_WIDE ? 76 : 34, 1, 1);
            set_field(sideband, is_cq ? 88 : IS_WIDE ? 80 : 35, IS_WIDE ? 4 : 3, uint32_t(count - 1));
        }
    }
    last = is_last;
    put(data, words, WIDTH);
    keep = Keep(kept);
    put(user, sideband, USER);
}

}  // namespace

// Writes a port that a design may leave out.
#define PUT(top, port, value) \
    if constexpr (requires { (top).port; }) (top).port = std::remove_cvref_t<decltype((top).port)>(value)

extern "C" uint32_t lanemark_dut_beat_bytes(void) { return 4 * WIDTH; }

extern "C" void *lanemark_dut_new(void) { return std::make_unique<Device>().release(); }

extern "C" void lanemark_dut_free(void *device) { delete static_cast<Device *>(device); }

extern "C" void lanemark_dut_clock(void *opaque, const lanemark_dut_in *in, lanemark_dut_out *out) {
    auto &device = *static_cast<Device *>(opaque);
    *out = {};
    if (!device.failure.empty()) return;  // its state may be half of a clock
    if (in->reset) device.reset();
    if (in->flr) device.reset_function();
    device.choose(*in);
    Packet *cq = device.cq.empty() ? nullptr : &device.cq.front();
    Packet *rc = device.offers_completion() ? &device.rc.front() : nullptr;
    // A packet that has begun is taken to its end.
    bool has_room = device.requests.size() + device.completions.size() < 8;
    bool rq_ready = !device.stall() && (has_room || !device.rq_in.words.empty());
    bool cc_ready = !device.stall() && (has_room || !device.cc_in.words.empty());
    bool cq_taken = false, rc_taken = false, flr_done = true;
    uint32_t vectors = 0;
    Collector::Beat rq{}, cc{};
    auto before = [&](auto &top) {
        top.user_reset = in->reset;
        top.m_axis_cq_tvalid = cq != nullptr;
        offer(cq, top.m_axis_cq_tdata, top.m_axis_cq_tkeep, top.m_axis_cq_tlast, top.m_axis_cq_tuser, true);
        top.m_axis_rc_tvalid = rc != nullptr;
        offer(rc, top.m_axis_rc_tdata, top.m_axis_rc_tkeep, top.m_axis_rc_tlast, top.m_axis_rc_tuser, false);
        // One bit, or four copies of it: rtl/build looks.
        top.s_axis_rq_tready = rq_ready ? RQ_READY : 0;
        top.s_axis_cc_tready = cc_ready ? CC_READY : 0;
        // The core supports up to 1024 B.
        PUT(top, cfg_max_payload, std::min(std::countr_zero(uint32_t(in->mps)) - 7, 3));
        PUT(top, cfg_max_read_req, std::countr_zero(uint32_t(in->mrrs)) - 7);
        // Memory Space Enable and Bus Master Enable of function 0.
        PUT(top, cfg_function_status, 2 | in->bus_master << 2);
        PUT(top, cfg_flr_in_process, device.is_in_flr);
        PUT(top, cfg_interrupt_msi_enable, in->msi_enable);
        PUT(top, cfg_interrupt_msi_sent, device.msi_sent);
        PUT(top, cfg_interrupt_msi_fail, device.msi_failed);
        PUT(top, pcie_rq_seq_num0, device.sequences.empty() ? 0 : device.sequences.front());
        PUT(top, pcie_rq_seq_num_vld0, !device.sequences.empty());
    };
    auto sample = [&](auto &top) {
        // A port of one bit has the lowest of the four.
        cq_taken = cq && (top.m_axis_cq_tready & 1);
        rc_taken = rc && (top.m_axis_rc_tready & 1);
        rq = {bool(top.s_axis_rq_tvalid), rq_ready, bool(top.s_axis_rq_tlast), uint32_t(top.s_axis_rq_tkeep), {}, {}, false};
        get(top.s_axis_rq_tdata, rq.data, WIDTH);
        get(top.s_axis_rq_tuser, rq.user, USER);
        rq.discontinues = field(rq.user, IS_WIDE ? 36 : 11, 1);
        cc = {bool(top.s_axis_cc_tvalid), cc_ready, bool(top.s_axis_cc_tlast), uint32_t(top.s_axis_cc_tkeep), {}, {}, false};
        get(top.s_axis_cc_tdata, cc.data, WIDTH);
        get(top.s_axis_cc_tuser, cc.user, USER);
        cc.discontinues = field(cc.user, IS_WIDE ? 16 : 0, 1);
        if constexpr (requires { top.cfg_flr_done; }) flr_done = top.cfg_flr_done & 1;
        if constexpr (requires { top.cfg_interrupt_msi_int; }) vectors = uint32_t(top.cfg_interrupt_msi_int);
    };
    make_clock(device, before, sample);
    if (!device.sequences.empty()) device.sequences.pop_front();
    device.msi_sent = device.msi_failed = false;
    // What was on the link during this clock.
    out->rx_ready = !device.is_in_flr && device.cq.size() < 64 && device.rc.size() < 64;
    if (device.is_sending) {
        Tlp &tlp = device.sending;
        size_t count = std::min<size_t>(4 * WIDTH, tlp.bytes.size() - device.sent);
        std::copy_n(tlp.bytes.begin() + std::ptrdiff_t(device.sent), count, out->tx_data);
        out->tx_bytes = uint8_t(count);
        out->tx_last = device.sent + count == tlp.bytes.size();
        if (in->tx_ready) {
            device.sent += count;
            if (out->tx_last) {
                device.is_sending = false;
                if (tlp.is_msi) device.msi_sent = true;
                else if (tlp.kind != Tlp::COMPLETION) device.sequences.push_back(tlp.sequence);
            }
        }
    }
    if (in->reset) return;
    if (cq_taken) {
        cq->next += std::min(cq->left(), WIDTH);
        if (cq->left() == 0) {
            device.posted_taken += cq->is_posted;
            device.cq.pop_front();
        }
    }
    if (rc_taken) {
        rc->next += std::min(rc->left(), WIDTH);
        if (rc->left() == 0) device.rc.pop_front();
    }
    device.count_timeouts(in->timeout_clocks);
    if (flr_done) device.is_in_flr = false;
    if (device.rq_in.take(rq, device)) device.request_of_user(in->requester_id);
    if (device.cc_in.take(cc, device)) device.completion_of_user(in->requester_id);
    device.interrupt(*in, vectors);
    if (in->rx_bytes && out->rx_ready) {
        if (device.incoming.empty()) device.bar = in->rx_bar;
        device.incoming.insert(device.incoming.end(), in->rx_data, in->rx_data + in->rx_bytes);
        if (in->rx_last) device.arrive(in->requester_id);
    }
}

extern "C" const char *lanemark_dut_failure(void *opaque) {
    auto &device = *static_cast<Device *>(opaque);
    return device.failure.empty() ? nullptr : device.failure.c_str();
}
