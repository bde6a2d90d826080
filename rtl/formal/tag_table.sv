// Rules of card/tag_table.sv: which completions are data, where their bytes go, and when a tag is free again.
//
// They are proved for one tag and one byte of its reads, which the solver chooses: so they hold for all.
module tag_table_rules #(
    parameter int TAGS = 8,
    parameter int BITS = 13
) (
    input logic            clk,
    input logic            rst,
    input logic            flr,
    input logic [15:0]     requester_id,
    input logic [31:0]     timeout_clocks,
    input logic            has_free,
    input logic [$clog2(TAGS)-1:0] free_tag,
    input logic            allocate,
    input logic [6:0]      new_lower,
    input logic [12:0]     new_bytes,
    input logic [BITS-1:0] new_own,
    input logic            check,
    input logic            is_completion,
    input logic            has_data,
    input logic            poisoned,
    input logic            short_of_data,
    input logic [10:0]     length,
    input logic [31:0]     dw0,
    input logic [31:0]     dw1,
    input logic [31:0]     dw2,
    input logic            data_valid,
    input logic [10:0]     data_index,
    input logic            data_end,
    input logic            malformed,
    input logic [BITS-1:0] write_address,
    input logic [3:0]      write_enable,
    input logic            any_busy,
    input logic            failure,
    input logic            unexpected,
    input logic            busy[TAGS],
    input logic            bad[TAGS],
    input logic            resting[TAGS],
    input logic [6:0]      lower[TAGS],
    input logic [12:0]     left[TAGS],
    input logic [BITS-1:0] own[TAGS],
    input logic [31:0]     timer[TAGS],
    input logic            accepting,
    input logic [$clog2(TAGS)-1:0] current
);
    localparam int W = $clog2(TAGS);

    // Free choice of the solver, kept from a reset on.
    logic [W-1:0] any_tag, t;
    logic [12:0]  any_byte, b;
    // Free choice in each clock: a TLP without data has DWs after its header.
    logic has_tail;

    // What tlp_rx does: a check, then the DWs in order, then the end.
    logic        in_body;
    logic        body_has_data;
    logic [10:0] came;
    // The read of tag t, as a model beside the table.
    logic            is_out, is_bad, is_resting;
    logic [12:0]     total, got, missing;
    logic [6:0]      first_lower, at;   // lower address of the whole read, and of its next completion
    logic [BITS-1:0] base, place;       // where its first byte goes, and its next one
    logic [32:0]     age;
    logic            takes;      // the TLP that comes is data of this read
    logic            b_written;

    wire [9:0]  tag      = {dw0[23], dw0[19], dw2[15:8]};
    wire [13:0] span     = 14'(missing) + 14'(at[1:0]);
    wire [12:0] announced = dw1[11:0] == 0 ? 13'd4096 : {1'b0, dw1[11:0]};
    wire is_mine   = check && is_completion && tag == 10'(t) && is_out && dw2[31:16] == requester_id;
    wire is_right  = has_data && !short_of_data && !poisoned && dw1[15:13] == 3'b000 && announced == missing
                  && dw2[6:0] == at && 14'(length) <= (span + 14'd3) / 14'd4;
    wire is_error  = !has_data && dw1[15:13] != 3'b000;
    wire is_late   = is_out && age == {1'b0, timeout_clocks};
    wire allocates = allocate && free_tag == t;
    // Bytes that the whole completion has.
    wire [13:0] carries = 14'({length, 2'b00}) - 14'(at[1:0]);
    wire [12:0] brings  = carries < 14'(missing) ? carries[12:0] : missing;
    wire ends_data = data_end && takes && is_out;

    // Position of each lane in the completion; lanes before the first byte are negative.
    logic [3:0]         is_byte, is_byte_b, is_b, is_placed;
    logic signed [14:0] position[4];
    always_comb begin
        for (int lane = 0; lane < 4; lane++) begin
            position[lane]  = $signed({2'b00, data_index, 2'b00}) + 15'(lane) - $signed({13'd0, at[1:0]});
            is_byte[lane]   = takes && is_out && data_valid && position[lane] >= 0
                && position[lane] < $signed({2'b00, missing});
            is_byte_b[lane] = is_byte[lane] && $signed({2'b00, got}) + position[lane] == $signed({2'b00, b});
            is_b[lane]      = write_enable[lane] && current == t
                && BITS'(write_address + BITS'(lane)) == BITS'(base + b[BITS-1:0]);
            is_placed[lane] = BITS'(write_address + BITS'(lane)) == BITS'(place + BITS'(position[lane]));
        end
    end

    always_ff @(posedge clk) begin
        if (rst) begin
            t <= any_tag;
            b <= any_byte;
        end
        if (check) begin
            in_body       <= has_data ? !short_of_data : has_tail;
            body_has_data <= has_data;
            came          <= '0;
            takes         <= is_mine && is_right && !is_bad && !is_late;
            if (is_mine && !is_right) is_bad <= 1'b1;
            if (is_mine && is_error) is_out <= 1'b0;
        end
        if (data_valid) came <= came + 11'd1;
        if (is_b != 0) b_written <= 1'b1;
        if (data_end) begin
            in_body <= 1'b0;
            takes   <= 1'b0;
            if (ends_data && malformed) is_bad <= 1'b1;
            if (ends_data && !malformed) begin
                got     <= got + brings;
                missing <= missing - brings;
                at      <= at + brings[6:0];
                place   <= place + BITS'(brings);
                is_out  <= brings != missing;
            end
        end
        age <= age + 33'd1;
        if (is_late) begin
            is_out     <= 1'b0;
            is_resting <= 1'b1;
            takes      <= 1'b0;
            age        <= '0;
        end else if (is_resting && age == {1'b0, timeout_clocks}) begin
            is_resting <= 1'b0;
        end
        if (allocates) begin
            is_out      <= 1'b1;
            is_bad      <= 1'b0;
            total       <= new_bytes;
            got         <= '0;
            missing     <= new_bytes;
            first_lower <= new_lower;
            at          <= new_lower;
            base        <= new_own;
            place       <= new_own;
            age         <= '0;
            b_written   <= 1'b0;
        end
        if (rst || flr) begin
            is_out     <= 1'b0;
            is_resting <= 1'b0;
            takes      <= 1'b0;
        end
        if (rst) in_body <= 1'b0;
    end

    logic started = 1'b0;
    logic ran = 1'b0;
    always_ff @(posedge clk) begin
        started <= 1'b1;
        ran     <= !rst;
    end

    // Outcomes that are due in this clock, from the last one.
    logic        must_fail, completes, was_checked, was_known;
    logic [31:0] last_timeout;
    logic [10:0] last_length;
    always_ff @(posedge clk) begin
        must_fail    <= !flr && (is_late || is_mine && !is_right && !is_bad || ends_data && malformed);
        completes    <= !flr && !is_late && ends_data && !malformed && brings == missing;
        was_checked  <= check && is_completion && (tag == 10'(t) || tag >= 10'(TAGS));
        was_known    <= is_out && tag == 10'(t) && dw2[31:16] == requester_id;
        last_timeout <= timeout_clocks;
        last_length  <= length;
    end

    always_comb begin
        assume (started || rst);
        assume (any_byte < 13'd4096);
        // The engine: a read has up to 4 KiB, and no request starts in a function-level reset.
        if (allocate) assume (has_free && !flr && !rst && new_bytes >= 13'd1 && new_bytes <= 13'd4096);
        // The parser: the header stays to the end of its TLP, and the DWs come in order.
        assume (length >= 11'd1 && length <= 11'd1024);
        if (in_body) assume (length == last_length);
        if (short_of_data) assume (has_data);
        if (check) assume (!in_body && !data_valid && !data_end);
        if (data_valid) assume (in_body && body_has_data && data_index == came && came < length);
        if (data_end) assume (in_body && (malformed || came + 11'(data_valid) == length));
        // The timeout is a setting.
        if (ran) assume (timeout_clocks == last_timeout);
    end

    logic others_busy;
    always_comb begin
        others_busy = 1'b0;
        for (int i = 0; i < TAGS; i++) others_busy |= busy[i];
    end

    // Each rule may use the ones before it. First what the induction needs: the table agrees with the model above.
    always_comb if (!rst) begin
        a_tag_is_busy_while_its_read_is: assert (busy[t] == is_out && (!is_out || age <= {1'b0, timeout_clocks}));
        a_tag_rests_after_a_timeout: assert (resting[t] == is_resting && !(is_out && is_resting)
            && (!is_resting || age <= {1'b0, timeout_clocks}));
        accepted_data_is_in_a_body: assert (!accepting && !takes || in_body && body_has_data);
        bad_agrees: assert (!is_out || bad[t] == is_bad);
        acceptance_agrees: assert ((accepting && current == t && is_out) == takes && (!takes || !is_bad));
        timer_agrees: assert (!is_out || {1'b0, timer[t]} + age == {1'b0, timeout_clocks});
        the_rest_agrees: assert (!is_resting || {1'b0, timer[t]} + age == {1'b0, timeout_clocks});
        the_sum_agrees: assert (!is_out || missing + got == total && missing >= 13'd1 && total <= 13'd4096
            && total >= got);
        left_agrees: assert (!is_out || left[t] == missing);
        lower_agrees: assert (!is_out || lower[t] == at);
        place_agrees: assert (!is_out || place == BITS'(base + BITS'(got)) && at == 7'(first_lower + got[6:0]));
        own_agrees: assert (!is_out || own[t] == place);
        only_missing_bytes_are_written: assert (current != t || write_enable == is_byte);
        bytes_go_to_their_place: assert (current != t || (write_enable & ~is_placed) == 0);
        each_lane_has_its_byte: assert (is_b == is_byte_b);
        the_part_is_written: assert (!is_out || is_bad || b_written == (b < got
            || takes && b < total && 15'(b) + 15'(at[1:0]) < 15'(got) + 15'({came, 2'b00})));
        // What the card relies on, with the two rules of bytes above.
        a_new_read_has_a_free_tag: assert (!allocates || !is_out && !is_resting);
        an_idle_tag_is_offered: assert (is_out || is_resting || has_free);
        any_busy_is_any: assert (any_busy == others_busy);
        a_byte_is_written_once: assert (is_b == 0 || !b_written);
        a_complete_read_has_all_bytes: assert (!ran || !completes || b >= total || b_written);
        a_failed_read_is_reported: assert (!ran || !must_fail || failure);
        a_completion_without_a_read_is_reported: assert (!ran || !was_checked || unexpected == !was_known);
    end
endmodule
bind tag_table tag_table_rules #(.TAGS(TAGS), .BITS(BITS)) rules (.*);
