// Outstanding reads: one row for each tag, with the bytes that are still missing and a timer.
//
// A completion is data only if it agrees with its row in requester, status, byte count, lower address and
// length. Otherwise its read fails, and nothing more is accepted for this tag. After a timeout a tag is not
// used for another `timeout_clocks` clocks, so that a late completion matches no newer read.
module tag_table #(
    parameter int TAGS = 8,
    parameter int BITS = 13   // width of an address of the memory
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            flr,
    input  logic [15:0]     requester_id,
    input  logic [31:0]     timeout_clocks,

    // A new read.
    output logic            has_free,
    output logic [$clog2(TAGS)-1:0] free_tag,
    input  logic            allocate,
    input  logic [6:0]      new_lower,     // its address modulo 128
    input  logic [12:0]     new_bytes,
    input  logic [BITS-1:0] new_own,       // where its first byte goes

    // A completion: its header, its data and its end.
    input  logic            check,
    input  logic            is_completion,
    input  logic            has_data,
    input  logic            poisoned,
    input  logic            short_of_data,
    input  logic [10:0]     length,
    input  logic [31:0]     dw0,
    input  logic [31:0]     dw1,
    input  logic [31:0]     dw2,
    input  logic            data_valid,
    input  logic [10:0]     data_index,
    input  logic            data_end,
    input  logic            malformed,

    output logic [BITS-1:0] write_address,
    output logic [3:0]      write_enable,

    output logic            any_busy,
    output logic            failure,       // a read has failed in this clock
    output logic            unexpected     // a completion without a read
);
    localparam int W = $clog2(TAGS);

    logic            busy[TAGS];
    logic            bad[TAGS];
    logic            resting[TAGS];
    logic [6:0]      lower[TAGS];
    logic [12:0]     left[TAGS];
    logic [BITS-1:0] own[TAGS];
    logic [31:0]     timer[TAGS];

    // The completion that is checked, and the one whose data come.
    wire [9:0]   tag        = {dw0[23], dw0[19], dw2[15:8]};
    wire [W-1:0] row        = tag[W-1:0];
    wire         is_known   = is_completion && tag < 10'(TAGS) && busy[row] && dw2[31:16] == requester_id;
    wire [12:0]  byte_count = dw1[11:0] == 0 ? 13'd4096 : {1'b0, dw1[11:0]};
    wire [1:0]   offset     = lower[row][1:0];
    wire [12:0]  most_dw    = (left[row] + 13'(offset) + 13'd3) >> 2;
    wire is_good = has_data && !short_of_data && !poisoned && dw1[15:13] == 3'b000 && byte_count == left[row]
                && dw2[6:0] == lower[row] && 13'(length) <= most_dw;
    wire is_error_status = !has_data && dw1[15:13] != 3'b000;

    logic         accepting;
    logic [W-1:0] current;
    wire [1:0]    shift    = lower[current][1:0];
    wire [12:0]   carried  = {length, 2'b00} - 13'(shift);
    wire [12:0]   consumed = carried < left[current] ? carried : left[current];

    assign write_address = own[current] + BITS'({data_index, 2'b00}) - BITS'(shift);
    always_comb begin
        for (int lane = 0; lane < 4; lane++) begin
            write_enable[lane] = accepting && busy[current] && data_valid
                && ({data_index, 2'b00} + 13'(lane) >= 13'(shift))
                && ({data_index, 2'b00} + 13'(lane) - 13'(shift) < left[current]);
        end
    end

    always_comb begin
        has_free = 1'b0;
        free_tag = '0;
        any_busy = 1'b0;
        for (int i = TAGS - 1; i >= 0; i--) begin
            any_busy |= busy[i];
            if (!busy[i] && !resting[i]) begin
                has_free = 1'b1;
                free_tag = W'(i);
            end
        end
    end

    always_ff @(posedge clk) begin
        failure    <= 1'b0;
        unexpected <= 1'b0;
        if (check) begin
            accepting <= is_known && !bad[row] && is_good;
            current   <= row;
            unexpected <= is_completion && !is_known;
            if (is_known && !bad[row] && !is_good) begin
                bad[row] <= 1'b1;
                failure  <= 1'b1;
            end
            if (is_known && is_error_status) busy[row] <= 1'b0;
        end
        if (data_end) begin
            accepting <= 1'b0;
            if (accepting && malformed) begin
                bad[current] <= 1'b1;
                failure      <= 1'b1;
            end else if (accepting && busy[current]) begin
                lower[current] <= lower[current] + consumed[6:0];
                own[current]   <= own[current] + BITS'(consumed);
                left[current]  <= left[current] - consumed;
                busy[current]  <= consumed != left[current];
            end
        end
        // After the completion: a read that times out in the clock of a completion has timed out.
        for (int i = 0; i < TAGS; i++) begin
            if (busy[i] || resting[i]) timer[i] <= timer[i] - 32'd1;
            if (busy[i] && timer[i] == 0) begin
                busy[i]    <= 1'b0;
                resting[i] <= 1'b1;
                timer[i]   <= timeout_clocks;
                failure    <= 1'b1;
            end else if (resting[i] && timer[i] == 0) begin
                resting[i] <= 1'b0;
            end
        end
        // A completion that is still coming was for an earlier read of this tag.
        if (allocate && current == free_tag && !check) accepting <= 1'b0;
        if (allocate) begin
            busy[free_tag]  <= 1'b1;
            bad[free_tag]   <= 1'b0;
            lower[free_tag] <= new_lower;
            left[free_tag]  <= new_bytes;
            own[free_tag]   <= new_own;
            timer[free_tag] <= timeout_clocks;
        end
        if (rst || flr) begin
            accepting <= 1'b0;
            for (int i = 0; i < TAGS; i++) begin
                busy[i]    <= 1'b0;
                bad[i]     <= 1'b0;
                resting[i] <= 1'b0;
            end
        end
    end

    always_ff @(posedge clk) if (!rst) begin
        a_free_is_free: assert (!allocate || has_free && !busy[free_tag] && !resting[free_tag]);
        a_write_in_read: assert (write_enable == 0 || left[current] != 0);
    end
endmodule
